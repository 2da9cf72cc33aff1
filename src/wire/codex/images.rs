//! Images: which of them Codex sends, and the words that it sends in place of the others.
//!
//! ```text
//! http:, https:        never sent: it fetches nothing
//! data:                sent if it is in base64, and a PNG, a JPEG, a GIF or a WebP; no matter what its media type says
//! anything else        sent as it is: file:, the address of an upload
//! ```
//!
//! They are those of Codex 0.169 and 0.171, which decodes each picture. Here only its beginning is looked at: one that was cut
//! short, or is broken within, counts as sent.

use crate::model::{Block, Image, Source};

/// In the place of a picture that is elsewhere in the net.
const REMOTE: &str = "image content omitted because remote image URLs are not supported";
/// In the place of what is no picture.
const STRANGE: &str = "image content omitted because it could not be processed";

/// Puts the words in place of the pictures that are not sent, those in tools' answers included.
pub(super) fn leave_out(blocks: &mut [Block]) {
    for block in blocks {
        match block {
            Block::Image(image) => {
                if let Some(words) = omission(image) {
                    *block = Block::Text(words.to_owned());
                }
            }
            Block::Result { blocks, .. } => leave_out(blocks),
            _ => {}
        }
    }
}

/// Returns the words that are sent in place of a picture, if it is not sent.
fn omission(image: &Image) -> Option<&'static str> {
    let is_sent = match &image.source {
        Source::Data(data) => is_picture(data),
        Source::Url(url) => {
            let (scheme, rest) = url.split_once(':').unwrap_or_default();
            match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => return Some(REMOTE),
                "data" => rest.split_once(',').is_some_and(|(media, data)| {
                    media.to_ascii_lowercase().ends_with(";base64") && is_picture(data)
                }),
                _ => true,
            }
        }
        Source::Elsewhere => true,
    };
    (!is_sent).then_some(STRANGE)
}

/// Returns whether base64 is that of a picture, by how that begins; the signs that fill it up at its end may be missing.
fn is_picture(data: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh"];
    let code = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_base64 = code.len() % 4 != 1 && code.bytes().all(is_code);
    let is_webp = || {
        // Its kind comes after its length.
        let kind = code.strip_prefix("UklGR").and_then(|rest| rest.get(6..));
        kind.is_some_and(|kind| kind.starts_with("XRUJQ"))
    };
    is_base64 && (BEGINNINGS.iter().any(|begin| code.starts_with(begin)) || is_webp())
}
