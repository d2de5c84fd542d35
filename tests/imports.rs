//! The dependencies among the files of a crate: folders depend on each other in one direction, and files not in cycles.
//!
//! Every path in a file is resolved to the file that defines the item, through the re-exports of a folder's `mod.rs`.
#![allow(missing_docs)]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{Item, UseTree, Visibility, visit::Visit};

/// A module's path: the names from the crate's root down.
type Module = Vec<String>;

/// The paths and imports of one file.
#[derive(Default)]
struct File {
    path: PathBuf,
    /// Paths that it names, each with the module it appears in.
    paths: Vec<(Module, Vec<String>)>,
    /// Its imports, which it re-exports to the files below it or to all: a name, and the path behind it.
    handed_on: BTreeMap<String, Vec<String>>,
}

/// Collects the files below a folder by their modules.
fn files(folder: &Path, module: &Module, into: &mut BTreeMap<Module, File>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let below = || [module.clone(), vec![name.clone()]].concat();
        if path.is_dir() {
            files(&path, &below(), into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let module = if name == "mod" { module.clone() } else { below() };
            let text = fs::read_to_string(&path).unwrap();
            let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let mut reader = Reader { file: File { path, ..File::default() }, module: module.clone() };
            reader.visit_file(&syntax);
            into.insert(module, reader.file);
        }
    }
}

fn is_of_tests(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

struct Reader {
    file: File,
    module: Module,
}

impl Reader {
    fn use_tree(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.use_tree(&path.tree, &with(&path.ident), is_public),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.use_tree(item, before, is_public)),
            UseTree::Glob(_) => self.names(before.to_vec(), None, is_public),
            UseTree::Name(name) if name.ident == "self" => {
                self.names(before.to_vec(), before.last().cloned(), is_public);
            }
            UseTree::Name(name) => self.names(with(&name.ident), Some(name.ident.to_string()), is_public),
            UseTree::Rename(rename) => self.names(with(&rename.ident), Some(rename.rename.to_string()), is_public),
        }
    }

    fn names(&mut self, path: Vec<String>, name: Option<String>, is_public: bool) {
        match name {
            Some(name) => {
                if !is_public {
                    self.file.paths.push((self.module.clone(), path.clone()));
                }
                self.file.handed_on.insert(name, path);
            }
            None => self.file.paths.push((self.module.clone(), path)),
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Use(item) => self.use_tree(&item.tree, &[], !matches!(item.vis, Visibility::Inherited)),
            // Imports of unit tests are not dependencies of the program.
            Item::Mod(item) if item.attrs.iter().any(is_of_tests) => {}
            Item::Mod(item) if item.content.is_some() => {
                self.module.push(item.ident.to_string());
                syn::visit::visit_item_mod(self, item);
                self.module.pop();
            }
            _ => syn::visit::visit_item(self, item),
        }
    }

    // `pub(in path)` names a path that is not a dependency.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.file.paths.push((self.module.clone(), names));
        syn::visit::visit_path(self, path);
    }
}

/// The module whose file defines the item that a path names, if it is one of `files`.
fn resolve(files: &BTreeMap<Module, File>, module: &Module, path: &[String], depth: usize) -> Option<Module> {
    let mut at = module.clone();
    let mut names = path;
    match names.first()?.as_str() {
        "crate" => {
            at = Vec::new();
            names = &names[1..];
        }
        "self" => names = &names[1..],
        "super" => {
            while names.first().is_some_and(|name| name == "super") {
                at.pop()?;
                names = &names[1..];
            }
        }
        first => {
            let below = [&at[..], &[first.to_owned()]].concat();
            let known = files.get(&at).is_some_and(|file| file.handed_on.contains_key(first));
            if !files.contains_key(&below) && !known {
                return None;
            }
        }
    }
    for (done, name) in names.iter().enumerate() {
        let below = [&at[..], std::slice::from_ref(name)].concat();
        if files.contains_key(&below) {
            at = below;
            continue;
        }
        if let Some(behind) = files.get(&at).and_then(|file| file.handed_on.get(name)).filter(|_| depth < 8) {
            let behind = [&behind[..], &names[done + 1..]].concat();
            return resolve(files, &at, &behind, depth + 1);
        }
        break;
    }
    // An inline module belongs to its file.
    while !files.contains_key(&at) {
        at.pop()?;
    }
    Some(at)
}

/// The files that each file names.
fn imports(files: &BTreeMap<Module, File>) -> BTreeMap<Module, BTreeSet<Module>> {
    let of = |(module, file): (&Module, &File)| {
        let named = file.paths.iter().filter_map(|(inside, path)| resolve(files, inside, path, 0));
        (module.clone(), named.filter(|other| other != module).collect())
    };
    files.iter().map(of).collect()
}

/// The nodes reachable from a node.
fn reached<'a>(graph: &'a BTreeMap<Module, BTreeSet<Module>>, from: &'a Module) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut waiting: Vec<&Module> = graph[from].iter().collect();
    while let Some(node) = waiting.pop() {
        if seen.insert(node) {
            waiting.extend(graph.get(node).into_iter().flatten());
        }
    }
    seen
}

/// The files that are part of a cycle, each with another file of that cycle.
fn circles(graph: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let stands = |module: &Module| {
        let mut others = reached(graph, module).into_iter().filter(|other| *other != module);
        let other = others.find(|other| reached(graph, other).contains(module));
        other.map(|other| format!("{} with {}", module.join("::"), other.join("::")))
    };
    graph.keys().filter_map(stands).collect()
}

fn command() -> BTreeMap<Module, File> {
    let mut found = BTreeMap::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli"), &vec!["cli".to_owned()], &mut found);
    assert!(found.len() > 30, "{}", found.len());
    found
}

#[test]
fn no_files_of_the_command_stand_in_a_circle() {
    assert_eq!(circles(&imports(&command())), Vec::<String>::new());
}

#[test]
fn the_rooms_of_the_command_name_each_other_in_one_direction() {
    // The commands, their choice of devices and operations, input and output, the arguments.
    let order = ["commands", "choose", "io", "arguments"];
    let place = |module: &Module| module.get(1).and_then(|room| order.iter().position(|name| name == room));
    let files = command();
    let mut counted = 0;
    for (from, named) in imports(&files) {
        for to in &named {
            let (Some(above), Some(below)) = (place(&from), place(to)) else { continue };
            counted += 1;
            assert!(above <= below, "{} names {}", files[&from].path.display(), to.join("::"));
        }
    }
    assert!(counted > 100, "{counted}");
}

#[test]
fn the_rooms_of_reports_name_each_other_in_one_direction_and_no_files_stand_in_a_circle() {
    // Comparisons, summaries, the records themselves.
    let order = ["compare", "summary", "record"];
    let place = |module: &Module| order.iter().position(|name| Some(*name) == module.first().map(String::as_str));
    let mut found = BTreeMap::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("analysis/src"), &Module::new(), &mut found);
    found.retain(|module, _| module.is_empty() || place(module).is_some());
    assert!(found.len() > 35, "{}", found.len());
    let imports = imports(&found);
    let mut counted = 0;
    for (from, named) in &imports {
        for to in named {
            let (Some(above), Some(below)) = (place(from), place(to)) else { continue };
            counted += 1;
            assert!(above <= below, "{} names {}", found[from].path.display(), to.join("::"));
        }
    }
    assert!(counted > 80, "{counted}");
    assert_eq!(circles(&imports), Vec::<String>::new());
}

#[test]
fn no_views_of_reports_stand_in_a_circle() {
    let mut found = BTreeMap::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &Module::new(), &mut found);
    found.retain(|module, _| module.is_empty() || module[0] == "report");
    assert!(found.len() > 30, "{}", found.len());
    let imports = imports(&found);
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > 50);
    assert_eq!(circles(&imports), Vec::<String>::new());
}

#[test]
fn no_files_of_the_shaders_stand_in_a_circle_and_no_language_names_another() {
    let mut found = BTreeMap::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("shaders/src"), &Module::new(), &mut found);
    assert!(found.len() > 25, "{}", found.len());
    let imports = imports(&found);
    assert_eq!(circles(&imports), Vec::<String>::new());
    let mut counted = 0;
    for (from, named) in &imports {
        for to in named {
            counted += 1;
            assert_eq!(from.first(), to.first(), "{} names {}", found[from].path.display(), to.join("::"));
        }
    }
    assert!(counted > 50, "{counted}");
}

#[test]
fn a_circle_is_found_through_what_a_folder_hands_on() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("room")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("room/mod.rs", "mod one;\npub(crate) use one::One;\n");
    write("room/one.rs", "pub(crate) struct One(crate::other::Other);\n");
    write("other.rs", "use crate::room::One;\npub(crate) struct Other(Option<Box<One>>);\n");
    let read = || {
        let mut found = BTreeMap::new();
        files(folder.path(), &Vec::new(), &mut found);
        imports(&found)
    };
    assert_eq!(circles(&read()), ["other with room::one", "room::one with other"]);
    write("room/one.rs", "pub(crate) struct One;\n");
    assert!(circles(&read()).is_empty());
}

/// The crates whose folders must not depend on each other in a cycle.
const ROOTS: [&str; 15] = [
    "src",
    "analysis/src",
    "python/src",
    "capi/src",
    "models/src",
    "shaders/src",
    "backends/api/src",
    "backends/conformance/src",
    "backends/cpu/src",
    "backends/cuda/src",
    "backends/dots/src",
    "backends/sim/src",
    "backends/vulkan/src",
    "backends/wgpu/src",
    "tests/fake-driver/src",
];

#[test]
fn no_folders_stand_in_a_circle() {
    for root in ROOTS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
        let mut found = BTreeMap::new();
        files(&root, &Module::new(), &mut found);
        // A folder of the crate is a node; `lib.rs` and the other files next to the folders name what they re-export.
        let room = |module: &Module| {
            let name = module.first()?;
            root.join(name).is_dir().then(|| vec![name.clone()])
        };
        let mut rooms: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, named) in imports(&found) {
            let Some(inside) = room(&from) else { continue };
            rooms.entry(inside.clone()).or_default().extend(named.iter().filter_map(room).filter(|to| *to != inside));
        }
        assert_eq!(circles(&rooms), Vec::<String>::new(), "{}", root.display());
    }
}

/// The files that are part of a cycle; this number may only fall.
const CIRCLES: usize = 10;

#[test]
fn files_stand_in_no_more_circles() {
    let mut all = Vec::new();
    for root in ROOTS {
        let mut found = BTreeMap::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(root), &Module::new(), &mut found);
        all.extend(circles(&imports(&found)).into_iter().map(|circle| format!("{root}: {circle}")));
    }
    assert_eq!(all.len(), CIRCLES, "{all:#?}");
}
