//! Content of a session that a provider's API rejects: images of an unsupported type, invalid base64, addresses that cannot be
//! fetched.
//!
//! Invariant: content that can be sent is never changed.

use crate::{
    context::Shape,
    model::{Image, Source},
};

/// Replaces data that is not a valid image.
const UNREADABLE: &str = "[a picture whose bytes cannot be read]";

/// How many characters of an address are shown.
const SAID: usize = 200;

/// Returns None for an image that an API accepts, another form of it that is accepted, or as an error the text that replaces it.
pub(super) fn picture(image: &Image, shape: Shape) -> Result<Option<Image>, String> {
    let media = image.media.as_deref().unwrap_or("image/png").to_ascii_lowercase();
    match &image.source {
        // The data field may hold a whole data URL instead of bare base64.
        Source::Data(data) if data.starts_with("data:") => {
            let image = Image::at(data, image.bytes);
            Ok(Some(match &image.source {
                Source::Data(_) => picture(&image, shape)?.unwrap_or(image),
                Source::Url(_) | Source::Elsewhere => return Err(UNREADABLE.to_owned()),
            }))
        }
        Source::Data(data) if !is_base64(data) => Err(UNREADABLE.to_owned()),
        // Both names are in use, and only one of them is accepted.
        Source::Data(_) if media == "image/jpg" => {
            Ok(Some(Image { media: Some("image/jpeg".to_owned()), ..image.clone() }))
        }
        Source::Data(_) if !is_taken(&media, shape) => {
            Err(format!("[a picture of the kind {media}]"))
        }
        Source::Url(url) if !is_address(url, shape) => {
            let said: String = url.chars().take(SAID).collect();
            Err(format!("[a picture at {said}]"))
        }
        Source::Data(_) | Source::Url(_) | Source::Elsewhere => Ok(None),
    }
}

/// Returns true if an API accepts images of a media type.
fn is_taken(media: &str, shape: Shape) -> bool {
    match media {
        "image/png" | "image/jpeg" | "image/webp" => true,
        "image/gif" => shape != Shape::Gemini,
        "image/heic" | "image/heif" => shape == Shape::Gemini,
        _ => false,
    }
}

/// Returns true if an API fetches an image from an address.
fn is_address(url: &str, shape: Shape) -> bool {
    let has = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && !url.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    has("https://") || has("http://") || (shape == Shape::Gemini && has("gs://"))
}

/// Returns true if a text is valid base64, complete and without white space.
fn is_base64(data: &str) -> bool {
    let bytes = data.trim_end_matches('=');
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    data.len().is_multiple_of(4) && data.len() - bytes.len() <= 2 && bytes.bytes().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_that_an_interface_refuses_is_named() {
        let data = |media: &str, data: &str| Image {
            bytes: 9,
            media: (!media.is_empty()).then(|| media.to_owned()),
            source: Source::Data(data.to_owned()),
        };
        let check = |image: Image, shape, expected: &str| {
            let expected = if expected.is_empty() { Ok(None) } else { Err(expected.to_owned()) };
            assert_eq!(picture(&image, shape), expected);
        };
        let claude = Shape::Anthropic;
        check(data("image/png", "aGk="), claude, "");
        check(data("", "aGk="), claude, "");
        check(data("image/gif", "aGk="), claude, "");
        check(data("image/gif", "aGk="), Shape::Gemini, "[a picture of the kind image/gif]");
        check(data("image/heic", "aGk="), Shape::Gemini, "");
        check(data("image/heic", "aGk="), Shape::Openai, "[a picture of the kind image/heic]");
        check(data("image/svg+xml", "aGk="), claude, "[a picture of the kind image/svg+xml]");
        check(data("image/bmp", "aGk="), claude, "[a picture of the kind image/bmp]");
        for broken in ["not base64!", "aGk", "a===", "aG k=", "data:image/png,aGk="] {
            check(data("image/png", broken), claude, UNREADABLE);
        }
        let at = |url: &str| Image::at(url, 9);
        check(at("https://a.b/c.png"), claude, "");
        check(at("HTTP://a.b/c.png"), Shape::Openai, "");
        check(at("gs://a/c.png"), Shape::Gemini, "");
        check(at("gs://a/c.png"), claude, "[a picture at gs://a/c.png]");
        check(at("file:///etc/passwd"), claude, "[a picture at file:///etc/passwd]");
        check(at("[REDACTED_IMAGE_URL]"), claude, "[a picture at [REDACTED_IMAGE_URL]]");
        check(at(&"x".repeat(900)), claude, &format!("[a picture at {}]", "x".repeat(SAID)));
    }

    #[test]
    fn a_picture_that_is_only_written_otherwise_is_sent() {
        let image = |media: &str, data: &str| Image {
            bytes: 9,
            media: Some(media.to_owned()),
            source: Source::Data(data.to_owned()),
        };
        let whole = image("image/png", "aGk=");
        let made = picture(&image("image/x", "data:image/png;base64,aGk="), Shape::Anthropic);
        assert_eq!(made, Ok(Some(whole)));
        let made = picture(&image("image/jpg", "aGk="), Shape::Anthropic);
        assert_eq!(made, Ok(Some(image("image/jpeg", "aGk="))));
    }
}
