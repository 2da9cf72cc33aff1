//! Content blocks and usage counts of Anthropic's API, shared by the formats that copied them.

use crate::{
    json::Raw,
    model::{Block, Image, SentAs, Source, Thinking, Usage},
    wire::fields::{self, other, text},
};

/// The API's names for the usage counts.
const USAGE: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

/// Reads the usage reported by a model.
pub(super) fn read_usage(usage: Raw<'_>) -> Usage {
    fields::usage(usage, USAGE)
}

/// Returns usage as the JSON to write.
pub(super) fn usage(usage: &Usage) -> serde_json::Value {
    let numbers = [usage.input, usage.output, usage.cache_read, usage.cache_write];
    let fields = USAGE.into_iter().zip(numbers);
    fields.map(|(name, n)| (name.to_owned(), serde_json::Value::from(n))).collect()
}

/// Reads a block.
pub(super) fn block(item: Raw<'_>) -> Block {
    let field = |key| text(item, key).unwrap_or_default();
    match text(item, "type").as_deref() {
        Some("text") => Block::Text(field("text")),
        Some("thinking") => {
            let (text, signature) = (field("thinking"), text(item, "signature"));
            let sent_as = item.get("sent_as").and_then(Raw::text);
            let sent_as = sent_as.map_or(SentAs::Block, |word| SentAs::of_word(&word));
            let signature = signature.filter(|signature| !signature.is_empty());
            let is_redacted = sent_as != SentAs::Block && text.is_empty() && signature.is_some();
            Block::Thinking(Thinking { text, signature, is_redacted, sent_as })
        }
        Some("redacted_thinking") => Block::Thinking(Thinking {
            text: String::new(),
            signature: text(item, "data"),
            is_redacted: true,
            sent_as: SentAs::Block,
        }),
        Some("image") => {
            let bytes = item.bytes().len();
            let source = item.get("source");
            let field = |key| source.and_then(|source| text(source, key));
            Block::Image(match (field("data"), field("url")) {
                (Some(data), _) => {
                    Image { bytes, media: field("media_type"), source: Source::Data(data) }
                }
                (None, Some(url)) => Image::at(&url, bytes),
                (None, None) => Image { bytes, media: None, source: Source::Elsewhere },
            })
        }
        _ => other(item),
    }
}
