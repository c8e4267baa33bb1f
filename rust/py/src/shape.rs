//! How much a row of a file holds, told before anything is made of it: what is too much is refused before it has cost
//! anything. Rows come from anybody, so nothing that they say of themselves is believed.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// Most values, objects and lists, texts, bytes of texts, and levels of a row, in this order.
type Bounds = (usize, usize, usize, usize, usize);

const NOT_UTF8: &str = "utf8";
const NOT_JSON: &str = "json";
const OVER_BYTES: &str = "bytes";

/// What was met so far.
struct Shape {
    most: Bounds,
    values: usize,
    holders: usize,
    texts: usize,
    text_bytes: usize,
}

impl Shape {
    const fn new(most: Bounds) -> Self {
        Self { most, values: 0, holders: 0, texts: 0, text_bytes: 0 }
    }

    fn values(&mut self, count: usize) -> Result<(), &'static str> {
        self.values = self.values.saturating_add(count);
        within(self.values, self.most.0, "values")
    }

    fn holder(&mut self, depth: usize) -> Result<(), &'static str> {
        self.holders += 1;
        within(self.holders, self.most.1, "holders")?;
        within(depth, self.most.4, "levels")
    }

    fn text(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.texts += 1;
        self.text_bytes = self.text_bytes.saturating_add(bytes);
        within(self.texts, self.most.2, "texts")?;
        within(self.text_bytes, self.most.3, "text bytes")
    }
}

const fn within(count: usize, most: usize, word: &'static str) -> Result<(), &'static str> {
    if count > most { Err(word) } else { Ok(()) }
}

/// A line of JSON as a text of ASCII alone, or a word for what it has too much of. A text with one character of a far plane
/// takes four bytes for each of its characters; with that one escaped it takes one.
#[pyfunction]
pub fn plain_json<'py>(
    py: Python<'py>,
    line: &[u8],
    most: Bounds,
) -> (Option<Bound<'py, PyString>>, Option<&'static str>) {
    let plain = see_json(line, most).and_then(|()| std::str::from_utf8(line).map_err(|_| NOT_UTF8));
    match plain {
        Ok(line) if line.is_ascii() => (Some(PyString::new(py, line)), None),
        Ok(line) => (Some(PyString::new(py, &escaped(line))), None),
        Err(word) => (None, Some(word)),
    }
}

fn escaped(line: &str) -> String {
    let wide = line.bytes().filter(|byte| !byte.is_ascii()).count();
    let mut out = String::with_capacity(line.len() + 2 * wide);
    for character in line.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str("\\u");
                for shift in [12, 8, 4, 0] {
                    out.push(char::from_digit(u32::from(*unit >> shift) & 0xf, 16).unwrap_or('0'));
                }
            }
        }
    }
    out
}

fn see_json(line: &[u8], most: Bounds) -> Result<(), &'static str> {
    let mut shape = Shape::new(most);
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let (end, bytes) = json_text(line, at)?;
                shape.text(bytes)?;
                at = end;
            }
            b'[' | b'{' => {
                depth += 1;
                shape.values(1)?;
                shape.holder(depth)?;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => shape.values(1)?,
            _ => {}
        }
    }
    Ok(())
}

/// Where the text that begins at `at` ends, and how many bytes of UTF-8 it stands for.
fn json_text(line: &[u8], mut at: usize) -> Result<(usize, usize), &'static str> {
    let mut bytes = 0;
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => break,
            // No escape of JSON's: escaped once more, it would become one.
            b'\\' if line.get(at).is_some_and(|next| !next.is_ascii()) => return Err(NOT_JSON),
            b'\\' => {
                let unit = unit_escaped(&line[at..]);
                at += if unit.is_some() { 5 } else { 1 };
                bytes += match unit {
                    // Half a surrogate pair: two of them make four bytes.
                    Some(0x80..0x800 | 0xD800..0xE000) => 2,
                    Some(0x800..) => 3,
                    _ => 1,
                };
            }
            _ => bytes += 1,
        }
    }
    Ok((at, bytes))
}

/// The unit of UTF-16 in what follows a backslash, if it is one.
fn unit_escaped(rest: &[u8]) -> Option<u16> {
    let hex = std::str::from_utf8(rest.strip_prefix(b"u")?.get(..4)?).ok()?;
    u16::from_str_radix(hex, 16).ok()
}

/// Where the item of msgpack that begins at `at` ends, as far as `data` tells, and a word for what it has too much of or may
/// not have. The end lies beyond the data when more is needed to know.
///
/// A header can claim more than a file holds. It is counted as it claims, and nothing is made of it.
#[pyfunction]
pub fn msgpack_end(data: &[u8], at: usize, bytes_max: usize, most: Bounds) -> (usize, Option<&'static str>) {
    match see_msgpack(data, at, bytes_max, most) {
        Ok(end) => (end, None),
        Err(word) => (at, Some(word)),
    }
}

/// What begins with a byte: how many bytes that follow say its length, or the length itself.
enum Head {
    Value(usize),
    Text(Length),
    List(Length),
    Map(Length),
    Refused(&'static str),
}

enum Length {
    Is(usize),
    Follows(usize),
}

fn head(byte: u8) -> Head {
    use Length::{Follows, Is};
    let low = usize::from(byte);
    match byte {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => Head::Value(0),
        0x80..=0x8f => Head::Map(Is(low & 0x0f)),
        0x90..=0x9f => Head::List(Is(low & 0x0f)),
        0xa0..=0xbf => Head::Text(Is(low & 0x1f)),
        0xc1 => Head::Refused("no value"),
        0xc4..=0xc6 => Head::Refused("binary"),
        0xc7..=0xc9 | 0xd4..=0xd8 => Head::Refused("extension"),
        0xcc | 0xd0 => Head::Value(1),
        0xcd | 0xd1 => Head::Value(2),
        0xca | 0xce | 0xd2 => Head::Value(4),
        0xcb | 0xcf | 0xd3 => Head::Value(8),
        0xd9..=0xdb => Head::Text(Follows(1 << (low - 0xd9))),
        0xdc | 0xdd => Head::List(Follows(2 << (low - 0xdc))),
        0xde | 0xdf => Head::Map(Follows(2 << (low - 0xde))),
    }
}

fn see_msgpack(data: &[u8], begin: usize, bytes_max: usize, most: Bounds) -> Result<usize, &'static str> {
    let needs_more = Ok(data.len() + 1);
    let mut shape = Shape::new(most);
    let mut at = begin;
    // Values that each level still waits for, the item itself first.
    let mut left = vec![1_usize];
    while let Some(waiting) = left.last_mut() {
        if *waiting == 0 {
            left.pop();
            continue;
        }
        *waiting -= 1;
        let Some(byte) = data.get(at) else { return needs_more };
        at += 1;
        let (count, length) = match head(*byte) {
            Head::Value(bytes) => {
                at += bytes;
                within(at - begin, bytes_max, OVER_BYTES)?;
                continue;
            }
            Head::Refused(word) => return Err(word),
            Head::Text(length) => (0, length),
            Head::List(length) => (1, length),
            Head::Map(length) => (2, length),
        };
        let length = match length {
            Length::Is(length) => length,
            Length::Follows(width) => {
                let Some(bytes) = data.get(at..at + width) else { return needs_more };
                at += width;
                bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
            }
        };
        if count == 0 {
            at = at.saturating_add(length);
            within(at - begin, bytes_max, OVER_BYTES)?;
            shape.text(length)?;
        } else {
            shape.values(length.saturating_mul(count))?;
            shape.holder(left.len())?;
            left.push(length.saturating_mul(count));
        }
    }
    Ok(at)
}
