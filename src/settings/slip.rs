//! Typos: the distance between a typed word and a known one.

/// Words longer than this are not compared for similarity.
const LONGEST: usize = 64;

/// Returns the number of insertions, deletions, substitutions and transpositions that turn one word into the other.
pub fn distance(one: &str, other: &str) -> usize {
    if one.len().max(other.len()) > LONGEST {
        return usize::from(one != other) * LONGEST;
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    let at = |rows: &[Vec<usize>], i: usize, j: usize| {
        rows.get(i).and_then(|row| row.get(j)).copied().unwrap_or(usize::MAX / 2)
    };
    for (i, a) in (1..).zip(&one) {
        rows.push(vec![i]);
        for (j, b) in (1..).zip(&other) {
            let mut least = at(&rows, i - 1, j - 1) + usize::from(a != b);
            least = least.min(at(&rows, i - 1, j) + 1).min(at(&rows, i, j - 1) + 1);
            if i > 1 && j > 1 && one.get(i - 2) == Some(b) && other.get(j - 2) == Some(a) {
                least = least.min(at(&rows, i - 2, j - 2) + 1);
            }
            if let Some(row) = rows.last_mut() {
                row.push(least);
            }
        }
    }
    at(&rows, one.len(), other.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slip_of_the_fingers_counts_once() {
        let check = |one, other, expected| assert_eq!(distance(one, other), expected);
        check("log", "log", 0);
        check("lgo", "log", 1);
        check("stauts", "status", 1);
        check("statu", "status", 1);
        check("", "log", 3);
        check("search", "clear", 4);
        check(&"x".repeat(3_000_000), "log", LONGEST);
    }
}
