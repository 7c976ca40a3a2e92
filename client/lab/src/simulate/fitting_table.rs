//! Columns of a table that fit on the screen: the most important ones stay.

/// Spaces behind each column.
const GAP: usize = 2;

/// Which columns of a table are shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FittingColumns {
    /// For each column, whether it is shown.
    shown: Vec<bool>,
}

impl FittingColumns {
    /// The columns of these headings and rows that fit into the width, all of them without one. The first
    /// column always stays, then those of `important` in its order, then the others.
    pub(super) fn of(
        headings: &[&'static str],
        rows: &[Vec<String>],
        important: &[&str],
        width: Option<u16>,
    ) -> FittingColumns {
        let Some(width) = width.map(usize::from) else {
            return FittingColumns { shown: vec![true; headings.len()] };
        };
        let wide = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([headings[column].chars().count()]).max().unwrap_or_default() + GAP
        };
        let rank = |column: &usize| {
            let place = important.iter().position(|name| *name == headings[*column]);
            (*column > 0, place.unwrap_or(usize::MAX), *column)
        };
        let mut order: Vec<usize> = (0..headings.len()).collect();
        order.sort_by_key(rank);
        let (mut shown, mut used) = (vec![false; headings.len()], 0);
        for column in order {
            // No spaces are needed behind the last column.
            if column == 0 || used + wide(column) <= width + GAP {
                used += wide(column);
                shown[column] = true;
            }
        }
        FittingColumns { shown }
    }

    /// The cells of the shown columns.
    pub(super) fn select<T>(&self, cells: impl IntoIterator<Item = T>) -> Vec<T> {
        cells.into_iter().zip(&self.shown).filter(|(_, shown)| **shown).map(|(cell, _)| cell).collect()
    }

    /// The headings of the columns that are not shown.
    pub(super) fn cut(&self, headings: &[&'static str]) -> Vec<&'static str> {
        headings.iter().zip(&self.shown).filter(|(_, shown)| !**shown).map(|(heading, _)| *heading).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_important_columns_stay() {
        let headings = ["name", "first", "second", "third"];
        let rows = [vec!["x".to_owned(), "1".into(), "a long cell".into(), "3".into()]];
        let fitting = |width| FittingColumns::of(&headings, &rows, &["third", "second"], width);
        assert_eq!(fitting(None).cut(&headings), <[&str; 0]>::default());
        assert_eq!(fitting(Some(31)).cut(&headings), <[&str; 0]>::default());
        assert_eq!(fitting(Some(30)).cut(&headings), ["first"]);
        assert_eq!(fitting(Some(18)).select(headings), ["name", "first", "third"]);
        assert_eq!(fitting(Some(1)).select(headings), ["name"]);
    }
}
