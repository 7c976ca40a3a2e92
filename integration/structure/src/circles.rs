//! Circles: files that use each other, directly or by way of others (strongly connected components).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Arrows;

/// Files that use each other, and what ties them.
#[derive(Debug, PartialEq, Eq)]
pub struct Circle {
    /// The files, two at least.
    pub files: BTreeSet<PathBuf>,
    /// The arrows between them.
    pub arrows: Arrows,
}

impl Circle {
    /// The directories in which its files lie. A module `name.rs` with a directory `name/` beside it lies in
    /// there.
    pub fn folders(&self) -> BTreeSet<PathBuf> {
        let children: BTreeSet<&Path> = self.files.iter().filter_map(|file| file.parent()).collect();
        let folder = |file: &PathBuf| {
            let own = file.with_extension("");
            if children.contains(own.as_path()) {
                own
            } else {
                file.parent().unwrap_or(Path::new("")).to_owned()
            }
        };
        self.files.iter().map(folder).collect()
    }
}

/// All circles, the largest first.
pub fn circles(arrows: &Arrows) -> Vec<Circle> {
    let mut forward: BTreeMap<&PathBuf, Vec<&PathBuf>> = BTreeMap::new();
    let mut backward: BTreeMap<&PathBuf, Vec<&PathBuf>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        forward.entry(from).or_default().push(to);
        backward.entry(to).or_default().push(from);
    }
    let mut placed: BTreeSet<&PathBuf> = BTreeSet::new();
    let mut found = Vec::new();
    for file in forward.keys().copied() {
        if placed.contains(file) {
            continue;
        }
        let together: BTreeSet<PathBuf> =
            reach(&forward, file).intersection(&reach(&backward, file)).map(|it| (*it).clone()).collect();
        placed.extend(forward.keys().copied().filter(|it| together.contains(*it)));
        if together.len() > 1 {
            let within = |(from, to): &(PathBuf, PathBuf)| together.contains(from) && together.contains(to);
            let arrows = arrows.iter().filter(|(ends, _)| within(ends));
            let arrows = arrows.map(|(ends, names)| (ends.clone(), names.clone())).collect();
            found.push(Circle { files: together, arrows });
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.files.len()));
    found
}

/// Every file that can be reached from this one, itself included.
fn reach<'a>(arrows: &BTreeMap<&'a PathBuf, Vec<&'a PathBuf>>, start: &'a PathBuf) -> BTreeSet<&'a PathBuf> {
    let mut seen = BTreeSet::from([start]);
    let mut todo = vec![start];
    while let Some(file) = todo.pop() {
        let next = arrows.get(file).into_iter().flatten().copied();
        todo.extend(next.filter(|file| seen.insert(file)));
    }
    seen
}
