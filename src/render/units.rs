//! Quantities for people: exact where small, rounded where large.

/// How many digits of an entry's id people are shown.
pub(crate) const DIGITS: usize = 12;

const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// Returns a number of bytes as `512 B` or, cut to tenths of a decimal unit, `3.4 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let mut scale = 1;
    let mut shown = format!("{bytes} B");
    for unit in UNITS {
        scale *= 1000;
        if bytes < scale {
            break;
        }
        shown = format!("{}.{} {unit}", bytes / scale, bytes % scale / (scale / 10));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_below_a_kilobyte_and_cut_above() {
        let check = |bytes, to: &str| assert_eq!(size(bytes), to);
        check(0, "0 B");
        check(999, "999 B");
        check(1000, "1.0 kB");
        check(3_456_789, "3.4 MB");
        check(u64::MAX, "18.4 EB");
    }
}
