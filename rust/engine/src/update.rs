//! Changing a memory. The state before it stays in the history.

use memkura_model::{Action, Door, Memory, MemoryId, Patch, Timestamp};

use crate::remember::{Embedding, Receipt, key_taken};
use crate::{Engine, EngineError, trust};

impl Engine {
    /// Changes fields of a memory in use. When its text changes, `embedding` describes the new one. Returns `None`,
    /// with nothing written, when the memory has another version than the patch expects.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when this context has no such memory in use; or a field cannot be taken.
    pub fn update(
        &self,
        context_id: &str,
        id: MemoryId,
        patch: &Patch,
        embedding: Embedding,
        door: Door,
        now: Timestamp,
    ) -> Result<Option<Receipt>, EngineError> {
        let _inside = self.enter()?;
        let now = self.steady(now);
        let context = self.context(context_id)?.ok_or(EngineError::not_found(id))?;
        let embedding = self.checked(embedding)?;
        let receipt = self.record.write(|writer| {
            let old = writer
                .by_id(&context, id)?
                .filter(|memory| memory.is_visible(now))
                .ok_or(EngineError::not_found(id))?;
            if old.trust_tier > door.source_type().tier() {
                return Err(key_taken("memory_id", &old));
            }
            if patch.expected.is_some_and(|expected| expected != old.version) {
                return Ok(None);
            }
            let patched = patch.applied_to(&old)?;
            trust::may_deliver(patched.delivery_mode, patched.trust_tier)?;
            let version = old.version + 1;
            let same_text = patched.summary == old.summary && patched.content == old.content;
            let mut memory = Memory {
                version,
                updated_at: now.max(old.updated_at),
                text_version: if same_text { old.text_version } else { version },
                embedded: same_text && old.embedded,
                ..patched
            };
            writer.replace(&memory, Action::Update, door)?;
            memory.embedded = self.write_vectors(writer, &memory, &embedding, door, now)?;
            Ok(Some(Receipt::of(&memory, false)))
        })?;
        if receipt.is_some() {
            self.follow_own_write();
        }
        Ok(receipt)
    }
}
