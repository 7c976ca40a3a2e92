//! Where something that the attributes register stands in the program.

/// Where something registered stands in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its module.
    pub module: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// File and line.
    pub place: &'static str,
}

/// Something that other processes find by its number.
pub(crate) trait Registered: 'static {
    /// What several of it are, for people.
    const PLURAL: &'static str;

    fn origin(&self) -> &Origin;
}
