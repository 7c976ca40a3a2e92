//! The modules of a crate: what each defines, imports and refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use syn::{Attribute, Item, ItemMod, UseTree};

use crate::calls::{self, Function};
use crate::references;

/// One module; several inline modules may lie in one file.
#[derive(Debug, Default)]
pub struct Module {
    /// The file, relative to the directory of the crate's root file.
    pub file: PathBuf,
    /// Items that it defines.
    pub definitions: Vec<Definition>,
    /// Names that it imports or re-exports, with what they stand for.
    pub(crate) imports: BTreeMap<String, Vec<String>>,
    /// Modules whose names it imports all.
    pub(crate) globs: Vec<Vec<String>>,
    /// Every path that it names.
    pub(crate) references: Vec<Vec<String>>,
    /// The public methods and associated functions of its inherent `impl` blocks, each with the type.
    pub(crate) methods: Vec<(String, String)>,
    /// The names of all methods and associated functions that it calls.
    pub(crate) method_calls: BTreeSet<String>,
    /// Its functions, with the calls that they make.
    functions: Vec<Function>,
}

impl Module {
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter()
    }
}

impl Module {
    /// Whether it holds an earlier version of a format, whose names are those of that version. Such modules
    /// are directories or files named `v` and a number.
    pub fn is_frozen(&self) -> bool {
        self.file.iter().any(|part| {
            let name = Path::new(part).file_stem().and_then(|it| it.to_str()).unwrap_or_default();
            let number = name.strip_prefix('v').unwrap_or_default();
            !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit())
        })
    }
}

/// A named item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Whether it is a struct, an enum, a union, a trait or a type alias.
    pub is_type: bool,
    /// Who may name it.
    pub visibility: Visibility,
}

/// Who may name an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Its module.
    Private,
    /// The crate, or a part of it.
    Crate,
    /// Everybody who can reach its module.
    Public,
}

/// Reads the root file and all modules that it declares.
pub(crate) fn read_tree(root: &Path, modules: &mut BTreeMap<Vec<String>, Module>) -> io::Result<()> {
    let folder = root.parent().unwrap_or(Path::new("")).to_owned();
    let mut reader = Reader { folder: &folder, modules };
    reader.file(root, &folder, &[])
}

struct Reader<'a> {
    /// The directory of the root file.
    folder: &'a Path,
    modules: &'a mut BTreeMap<Vec<String>, Module>,
}

impl Reader<'_> {
    /// Reads a file as the module of this path, whose children lie in `children`.
    fn file(&mut self, file: &Path, children: &Path, path: &[String]) -> io::Result<()> {
        let parsed = syn::parse_file(&fs::read_to_string(file)?)
            .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
        self.items(&parsed.items, file, children, path)
    }

    fn items(&mut self, items: &[Item], file: &Path, children: &Path, path: &[String]) -> io::Result<()> {
        let mut module =
            Module { file: file.strip_prefix(self.folder).unwrap_or(file).to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_test(attributes(item))) {
            #[expect(clippy::wildcard_enum_match_arm, reason = "all other items define something")]
            match item {
                Item::Mod(child) => self.child(child, file, children, path)?,
                Item::Use(import) => note_imports(&mut module, &import.tree, &mut Vec::new()),
                other => {
                    module.definitions.extend(definition(other));
                    references::collect(other, &mut module.references, &mut module.method_calls);
                    module.methods.extend(public_methods(other));
                    calls::collect(other, &mut module.functions);
                }
            }
        }
        self.modules.insert(path.to_vec(), module);
        Ok(())
    }

    fn child(&mut self, child: &ItemMod, file: &Path, children: &Path, path: &[String]) -> io::Result<()> {
        let name = child.ident.to_string();
        let path = [path, std::slice::from_ref(&name)].concat();
        let below = children.join(&name);
        if let Some((_, items)) = &child.content {
            return self.items(items, file, &below, &path);
        }
        let beside = children.join(format!("{name}.rs"));
        let found = if beside.exists() { beside } else { below.join("mod.rs") };
        self.file(&found, &below, &path)
    }
}

/// What a `use` brings into the module; each leaf also counts as a reference.
fn note_imports(module: &mut Module, tree: &UseTree, before: &mut Vec<String>) {
    let mut leaf = |name: String, path: Vec<String>| {
        module.references.push(path.clone());
        module.imports.insert(name, path);
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            note_imports(module, &path.tree, before);
            before.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| note_imports(module, tree, before)),
        UseTree::Name(name) if name.ident == "self" => {
            leaf(before.last().cloned().unwrap_or_default(), before.clone());
        }
        UseTree::Name(name) => {
            leaf(name.ident.to_string(), [before.as_slice(), &[name.ident.to_string()]].concat());
        }
        UseTree::Rename(renamed) => {
            leaf(renamed.rename.to_string(), [before.as_slice(), &[renamed.ident.to_string()]].concat());
        }
        UseTree::Glob(_) => module.globs.push(before.clone()),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all other items have no name of their own")]
fn definition(item: &Item) -> Option<Definition> {
    let (ident, visibility, is_type) = match item {
        Item::Struct(it) => (&it.ident, &it.vis, true),
        Item::Enum(it) => (&it.ident, &it.vis, true),
        Item::Union(it) => (&it.ident, &it.vis, true),
        Item::Trait(it) => (&it.ident, &it.vis, true),
        Item::Type(it) => (&it.ident, &it.vis, true),
        Item::Fn(it) => (&it.sig.ident, &it.vis, false),
        Item::Const(it) => (&it.ident, &it.vis, false),
        Item::Static(it) => (&it.ident, &it.vis, false),
        _ => return None,
    };
    let visibility = match visibility {
        syn::Visibility::Public(_) => Visibility::Public,
        syn::Visibility::Restricted(_) => Visibility::Crate,
        syn::Visibility::Inherited => Visibility::Private,
    };
    Some(Definition { name: ident.to_string(), is_type, visibility })
}

/// The public methods and associated functions of an inherent `impl` block, with the name of the type.
fn public_methods(item: &Item) -> Vec<(String, String)> {
    let Item::Impl(block) = item else { return Vec::new() };
    let (None, syn::Type::Path(owner)) = (&block.trait_, &*block.self_ty) else { return Vec::new() };
    let owner = owner.path.segments.last().map(|it| it.ident.to_string()).unwrap_or_default();
    let public = |item: &syn::ImplItem| {
        let syn::ImplItem::Fn(it) = item else { return None };
        let is_public = matches!(it.vis, syn::Visibility::Public(_)) && !is_test(&it.attrs);
        is_public.then(|| (owner.clone(), it.sig.ident.to_string()))
    };
    block.items.iter().filter_map(public).collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "attributes of other items do not matter here")]
fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Const(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        _ => &[],
    }
}

/// Features whose code is only there for tests: properties for the fuzzer, and a recorder of frames.
const TEST_FEATURES: [&str; 2] = ["fuzzing", "recorded"];

/// Whether an item is only there for tests.
fn is_test(attributes: &[Attribute]) -> bool {
    let is_for_tests = |condition: &syn::Meta| match condition {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::NameValue(pair) => matches!(
            &pair.value,
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(name), .. })
                if pair.path.is_ident("feature") && TEST_FEATURES.contains(&name.value().as_str())
        ),
        syn::Meta::List(_) => false,
    };
    let only_for = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(|it| is_for_tests(&it))
    };
    attributes.iter().any(only_for)
}
