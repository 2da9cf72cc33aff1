//! Images: which of them Codex sends, and the words that it sends in the place of the others.
//!
//! ```text
//! http:, https:        never sent: it fetches nothing
//! data:                sent if it is in base64, and a PNG, a JPEG, a GIF or a WebP; no matter what its media type says
//! anything else        sent as it stands: file:, the address of an upload
//! ```
//!
//! They are those of Codex 0.169 and 0.171, which decodes each picture. Here it is looked at only whether it is there to its end,
//! not whether its pixels are in order.

use crate::model::{Block, Image, Source};

/// In the place of a picture that lies elsewhere in the net.
const REMOTE: &str = "image content omitted because remote image URLs are not supported";
/// In the place of what is no picture.
const STRANGE: &str = "image content omitted because it could not be processed";

/// Puts the words in the place of the pictures that are not sent, those in tools' answers included.
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

/// Returns the words that are sent in the place of a picture, if it is not sent.
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

fn is_picture(data: &str) -> bool {
    decoded(data)
        .is_some_and(|bytes| [png, gif, jpeg, webp].iter().any(|of_kind| of_kind(&bytes).is_some()))
}

/// Reads base64, which may lack the signs that fill it up at its end.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let data = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3 + 2);
    for signs in data.as_bytes().chunks(4) {
        let mut group = 0_u32;
        for at in 0..4 {
            let value = match signs.get(at) {
                Some(sign @ b'A'..=b'Z') => sign - b'A',
                Some(sign @ b'a'..=b'z') => sign - b'a' + 26,
                Some(sign @ b'0'..=b'9') => sign - b'0' + 52,
                Some(b'+') => 62,
                Some(b'/') => 63,
                None => 0,
                Some(_) => return None,
            };
            group = group << 6 | u32::from(value);
        }
        let [_, whole @ ..] = group.to_be_bytes();
        bytes.extend_from_slice(whole.get(..signs.len() - 1).filter(|part| !part.is_empty())?);
    }
    Some(bytes)
}

/// Finds the pixels of a PNG, and another chunk behind them.
fn png(bytes: &[u8]) -> Option<()> {
    let mut rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let mut has_pixels = false;
    loop {
        let (length, behind) = rest.split_first_chunk()?;
        let (kind, behind) = behind.split_first_chunk::<4>()?;
        if has_pixels && kind != b"IDAT" {
            return Some(());
        }
        has_pixels |= kind == b"IDAT";
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        rest = behind.get(length.checked_add(4)?..)?;
    }
}

/// Finds the first picture of a GIF.
fn gif(bytes: &[u8]) -> Option<()> {
    let rest = bytes.strip_prefix(b"GIF87a").or_else(|| bytes.strip_prefix(b"GIF89a"))?;
    let (&[_, _, _, _, flags, _, _], rest) = rest.split_first_chunk()?;
    let mut rest = behind_colors(rest, flags)?;
    loop {
        let (&kind, behind) = rest.split_first()?;
        rest = match kind {
            b'!' => behind_parts(behind.get(1..)?)?,
            b',' => {
                let (&[.., flags], behind) = behind.split_first_chunk::<9>()?;
                return behind_parts(behind_colors(behind, flags)?.get(1..)?).map(drop);
            }
            _ => return None,
        };
    }
}

/// Returns what stands behind a table of colors, if the flags say that there is one.
fn behind_colors(bytes: &[u8], flags: u8) -> Option<&[u8]> {
    bytes.get(if flags & 0x80 == 0 { 0 } else { 6 << (flags & 7) }..)
}

/// Returns what stands behind the parts of a block, of which the last one is empty.
fn behind_parts(mut bytes: &[u8]) -> Option<&[u8]> {
    loop {
        let (&length, behind) = bytes.split_first()?;
        if length == 0 {
            return Some(behind);
        }
        bytes = behind.get(usize::from(length)..)?;
    }
}

/// Finds the frame of a JPEG, and pixels behind it.
fn jpeg(bytes: &[u8]) -> Option<()> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    let mut has_frame = false;
    loop {
        let (&kind, behind) = rest.strip_prefix(b"\xff")?.split_first()?;
        let (length, _) = behind.split_first_chunk()?;
        rest = behind.get(usize::from(u16::from_be_bytes(*length))..)?;
        match kind {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => has_frame = true,
            0xda => return (has_frame && !rest.is_empty()).then_some(()),
            _ => {}
        }
    }
}

/// Finds the pixels of a WebP.
fn webp(bytes: &[u8]) -> Option<()> {
    let mut rest = bytes.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WEBP")?;
    loop {
        let (kind, behind) = rest.split_first_chunk::<4>()?;
        let (length, behind) = behind.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let behind = behind.get(length..)?;
        if [b"VP8 ", b"VP8L", b"ANMF"].contains(&kind) {
            return Some(());
        }
        rest = behind.get(length % 2..)?;
    }
}
