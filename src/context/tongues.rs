//! Refusals in other languages than English: gateways and local servers word them for their own users.
//!
//! No grammar is read, only stems, in three lists: what is more than fits, what was sent, and what is neither. A refusal tells of
//! an overflow if it has a stem of each of the first two and none of the third. No stem of the first list occurs in an English
//! word, so that English is judged by its sentences.

use crate::context::figures::Figures;

/// More than fits.
const OVER: [&str; 65] = [
    "超过",
    "超出",
    "超長",
    "超长",
    "过长",
    "过大",
    "太长",
    "上限",
    "超過",
    "過長",
    "太長",
    "過大",
    // Japanese and Korean
    "超え",
    "長すぎ",
    "大きすぎ",
    "オーバー",
    "초과",
    "너무 길",
    "너무 깁",
    "너무 큽",
    "넘었",
    "넘습",
    // German, Dutch and Swedish
    "überschreit",
    "überschritt",
    "übersteigt",
    "zu lang",
    "zu groß",
    "länger als",
    "größer als",
    "overschrijd",
    " is te lang",
    "överskrid",
    "för lång",
    // French, Spanish, Portuguese and Italian
    "dépass",
    "excède",
    "trop long",
    "trop grand",
    "supera ",
    "superó",
    "sobrepasa",
    "excede ",
    "demasiado larg",
    "demasiado grande",
    "ultrapass",
    "longo demais",
    "longa demais",
    "muito long",
    "eccede",
    "troppo lung",
    "troppo grande",
    // Russian, Ukrainian, Polish and Czech
    "превыш",
    "превыс",
    "слишком длин",
    "слишком больш",
    "длиннее",
    "перевищ",
    "przekracz",
    "zbyt dług",
    "za dług",
    "překrač",
    "příliš dlouh",
    // Turkish and Vietnamese
    "aşıyor",
    "vượt quá",
    "aşıl",
    "är fullt",
];

/// The most that fits, which tells something only next to more.
const MOST: [&str; 9] =
    ["最大", "最长", "最長", "최대", "максим", "maximal", "erlaubt", "máxim", "massim"];

/// What was sent, and the context that it must fit into.
const SENT: [&str; 51] = [
    "token",
    "jeton",
    "токен",
    "トークン",
    "토큰",
    "词元",
    "prompt",
    "プロンプト",
    "프롬프트",
    "промпт",
    "提示词",
    "提示詞",
    "上下文",
    "コンテキスト",
    "컨텍스트",
    "문맥",
    "kontext",
    "contexte",
    "contexto",
    "contesto",
    "контекст",
    "bağlam",
    "ngữ cảnh",
    "输入",
    "輸入",
    "入力",
    "입력",
    "eingabe",
    "invoer",
    "entrée",
    "entrada",
    "input",
    "对话",
    "對話",
    "会話",
    "대화",
    "消息",
    "訊息",
    "メッセージ",
    "메시지",
    "konversation",
    "unterhaltung",
    "conversation",
    "conversación",
    "conversa",
    "conversazione",
    "диалог",
    "запрос",
    "сообщени",
    "żądani",
    "zapytani",
];

/// What has limits of its own, and what a refusal is about where the size is not what was refused.
const OTHERS: [&str; 62] = [
    "输出",
    "輸出",
    "出力",
    "출력",
    "ausgabe",
    "sortie",
    "salida",
    "saída",
    "вывод",
    "ответ",
    "图片",
    "圖片",
    "画像",
    "이미지",
    "bild",
    "image",
    "imagen",
    "imagem",
    "immagine",
    "изображен",
    "文件",
    "檔案",
    "ファイル",
    "파일",
    "datei",
    "fichier",
    "archivo",
    "arquivo",
    "файл",
    "稍后",
    "稍後",
    "しばらく",
    "나중에",
    "später",
    "plus tard",
    "más tarde",
    "mais tarde",
    "più tardi",
    "позже",
    "zugriffstoken",
    "d'accès",
    "de acceso",
    "de acesso",
    "доступа",
    "無効",
    "temperature",
    "top_p",
    "top_k",
    "取值范围",
    "期限",
    "过期",
    "過期",
    "만료",
    "истек",
    "срок",
    "abgelaufen",
    "gültigkeit",
    "expir",
    "validité",
    "validez",
    "validade",
    "scadut",
];

/// A rate or a quota.
const RATES: [&str; 41] = [
    "频率",
    "频繁",
    "速率",
    "限流",
    "并发",
    "每分钟",
    "每分鐘",
    "毎分",
    "1分あたり",
    "レート制限",
    "リクエストが多すぎ",
    "분당",
    "요청이 너무 많",
    "pro minute",
    "pro sekunde",
    "pro tag",
    "zu viele anfragen",
    "par minute",
    "par jour",
    "trop de requêtes",
    "por minuto",
    "demasiadas solicitudes",
    "muitas solicitações",
    "al minuto",
    "troppe richieste",
    "в минуту",
    "слишком много запросов",
    "na minutę",
    "kontingent",
    "cuota",
    "cota ",
    "配额",
    "配額",
    "额度",
    "額度",
    "クォータ",
    "割り当て",
    "レートリミット",
    "할당량",
    "квот",
    "kota",
];

fn says(plain: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| plain.contains(stem))
}

/// Whether plain words name a rate or a quota.
pub(super) fn names_rate(plain: &str) -> bool {
    says(plain, &RATES)
}

/// Returns the figures of an overflow, if plain words tell of one: where there are two, the larger one was sent.
pub(super) fn overflow(plain: &str) -> Option<Figures> {
    if !says(plain, &SENT) || says(plain, &OTHERS) {
        return None;
    }
    let figures = match numbers(plain)[..] {
        [one, other] if one != other => {
            Figures { used: Some(one.max(other)), limit: Some(one.min(other)) }
        }
        _ => Figures::default(),
    };
    let is_told = says(plain, &OVER) || (figures.used.is_some() && says(plain, &MOST));
    is_told.then_some(figures)
}

/// Returns the numbers that can be sizes of a context, each by the separator that its language has for thousands.
fn numbers(plain: &str) -> Vec<u64> {
    /// The smallest that is no code of an error, no place in a list and no version.
    const LEAST: u64 = 512;
    let is_separator = |c: char| matches!(c, '.' | ',' | '\u{a0}' | '\u{202f}' | '\'');
    let runs = plain.split(|c: char| !c.is_ascii_digit() && !is_separator(c));
    let number = |run: &str| {
        let mut groups = run.trim_matches(is_separator).split(is_separator);
        let first = groups.next()?.to_owned();
        let all = groups.try_fold(first, |all, group| (group.len() == 3).then(|| all + group))?;
        all.parse::<u64>().ok().filter(|number| *number >= LEAST)
    };
    runs.filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_is_told_in_any_of_these_languages() {
        let check = |said: &str, used: u64, limit: u64| {
            let figures = Figures { used: Some(used), limit: Some(limit) };
            assert_eq!(overflow(&said.to_lowercase()), Some(figures), "{said}");
        };
        check("Die Eingabe überschreitet das Kontextfenster: 9.001 von 8.192 Tokens", 9001, 8192);
        check("Maximum 8\u{202f}192 jetons : le contexte est dépassé (9\u{202f}001)", 9001, 8192);
        check("最大 8192 トークンを超えています: 9001", 9001, 8192);
        check("模型输入最大长度为 8192，当前为 9001", 9001, 8192);
        check("Контекст превышен: 9001 > 8192 (ошибка 400)", 9001, 8192);
    }

    #[test]
    fn rates_outputs_and_english_are_no_overflow_here() {
        for said in [
            "Die Ausgabe überschreitet 8.192 Tokens",
            "画像が大きすぎます: 入力 9001",
            "Le jeton d'accès a dépassé sa durée",
            "prompt is too long: 9001 tokens > 8192 maximum",
        ] {
            assert_eq!(overflow(&said.to_lowercase()), None, "{said}");
        }
        assert!(names_rate("se superó el límite de tokens por minuto"));
    }
}
