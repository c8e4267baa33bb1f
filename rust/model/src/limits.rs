//! Every bound, with its reason. A value over a bound is refused by name, never cut.

use crate::part::PART_BYTES_MIN;

/// Longest `content`, in bytes of UTF-8: a long chapter; larger things are documents and belong in files.
pub const CONTENT_BYTES_MAX: usize = 1 << 20;
/// Longest `summary`, in bytes: a summary that needs more is content.
pub const SUMMARY_BYTES_MAX: usize = 64 << 10;
/// Longest `key`, `scope`, `session` or context name, in bytes: they are names, and are shown on one line.
pub const NAME_BYTES_MAX: usize = 512;
/// Longest `type` label, in bytes.
pub const TYPE_BYTES_MAX: usize = 64;
/// Longest tag, in bytes.
pub const TAG_BYTES_MAX: usize = 256;
/// Most tags on one memory: each is a bitmap.
pub const TAGS_MAX: usize = 64;
/// Most metadata, in bytes of its JSON form.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Deepest nesting of metadata: recursion over it stays far from the end of any thread's stack.
pub const METADATA_DEPTH_MAX: usize = 32;
/// Bytes of all paths in the metadata of one memory, each as long as it is written in a filter: a long name above many
/// values is in the path of each of them.
pub const METADATA_PATHS_BYTES_MAX: usize = 1 << 20;
/// Most sources that one memory may name in `derived_from`.
pub const SOURCES_MAX: usize = 256;
/// Longest free-text `proof`, in bytes.
pub const PROOF_BYTES_MAX: usize = 16 << 10;
/// Longest query, in bytes: twice the longest content, so that any stored text can be asked for whole.
pub const QUERY_BYTES_MAX: usize = 2 << 20;
/// Longest text after compatibility normalisation, in bytes. One character may stand for a phrase (U+FDFA for eighteen
/// letters), so a text within its own limit could otherwise cost eleven times as much to index as it seems to.
pub const NORMALISED_BYTES_MAX: usize = 2 << 20;
/// Most hits of one recall, and most rows of one page of `list`.
pub const K_MAX: usize = 100_000;
/// Most drafts in one atomic batch: one transaction, and a bound on the memory that it needs.
pub const BATCH_MAX: usize = 50_000;
/// Deepest nesting of a filter.
pub const FILTER_DEPTH_MAX: usize = 32;
/// Most conditions in one filter.
pub const FILTER_CONDITIONS_MAX: usize = 1_000;
/// Most values in one `in` list.
pub const FILTER_VALUES_MAX: usize = 10_000;
/// Longest text in a filter value, in bytes.
pub const FILTER_TEXT_BYTES_MAX: usize = 4 << 10;
/// Most components of one embedding: twice the widest model in common use.
pub const DIMENSIONS_MAX: usize = 16_384;
/// Most vectors of one memory: the longest text, each part going at least [`crate::PART_BYTES_MIN`] further.
pub const CHUNKS_MAX: usize = (SUMMARY_BYTES_MAX + CONTENT_BYTES_MAX).div_ceil(PART_BYTES_MIN);
/// Longest state of waiting for another process's write, in seconds; callers may ask for less.
pub const BUSY_TIMEOUT_SECONDS_MAX: f64 = 3_600.0;
/// Memories that one context's index can number. Numbers are dense, so a stray one costs 8 bytes for each below it: 1 GiB
/// at this bound.
pub const CONTEXT_MEMORIES_MAX: usize = 1 << 27;

/// Each limit with its name, for `limits()` in Python and the reference page.
pub const ALL: &[(&str, usize)] = &[
    ("content_bytes", CONTENT_BYTES_MAX),
    ("summary_bytes", SUMMARY_BYTES_MAX),
    ("name_bytes", NAME_BYTES_MAX),
    ("type_bytes", TYPE_BYTES_MAX),
    ("tag_bytes", TAG_BYTES_MAX),
    ("tags", TAGS_MAX),
    ("metadata_bytes", METADATA_BYTES_MAX),
    ("metadata_depth", METADATA_DEPTH_MAX),
    ("metadata_paths_bytes", METADATA_PATHS_BYTES_MAX),
    ("sources", SOURCES_MAX),
    ("proof_bytes", PROOF_BYTES_MAX),
    ("query_bytes", QUERY_BYTES_MAX),
    ("normalised_bytes", NORMALISED_BYTES_MAX),
    ("k", K_MAX),
    ("batch", BATCH_MAX),
    ("filter_depth", FILTER_DEPTH_MAX),
    ("filter_conditions", FILTER_CONDITIONS_MAX),
    ("filter_values", FILTER_VALUES_MAX),
    ("filter_text_bytes", FILTER_TEXT_BYTES_MAX),
    ("dimensions", DIMENSIONS_MAX),
    ("chunks", CHUNKS_MAX),
];
