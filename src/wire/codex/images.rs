//! Images: which ones Codex sends, and the text that it sends instead of the others.
//!
//! ```text
//! http:, https:        never sent, because Codex does not fetch anything
//! data:                sent if it is base64 and a PNG, JPEG, GIF or WebP, whatever its media type says
//! anything else        sent unchanged: file:, the address of an upload
//! ```
//!
//! These are the rules of Codex 0.169 and 0.171, which decode each image. This code only looks at the first bytes, so an image
//! that is truncated or corrupted later counts as sent.

use crate::model::{Block, Image, Source};

/// Replaces an image at a URL.
const REMOTE: &str = "image content omitted because remote image URLs are not supported";
/// Replaces data that is not an image.
const STRANGE: &str = "image content omitted because it could not be processed";

/// Replaces the images that are not sent with text, including images in tool results.
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

/// Returns the text that replaces an image; None if the image is sent.
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

/// Returns true if base64 data begins like an image. Padding at its end may be missing.
fn is_picture(data: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["iVBORw0KGgo", "/9j/", "R0lGODdh", "R0lGODlh"];
    let code = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_base64 = code.len() % 4 != 1 && code.bytes().all(is_code);
    let is_webp = || {
        // The four bytes of the length come before the kind.
        let kind = code.strip_prefix("UklGR").and_then(|rest| rest.get(6..));
        kind.is_some_and(|kind| kind.starts_with("XRUJQ"))
    };
    is_base64 && (BEGINNINGS.iter().any(|begin| code.starts_with(begin)) || is_webp())
}
