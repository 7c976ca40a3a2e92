//! Three stores that store, want, fetch, drop and are lost, with frames on their way in both directions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::super::kit::member;
use crate::fetches::{Fetches, FreedPlaces, NextStore, StoreFrames, StoredAt};
use crate::{CallError, FetchFailure, FromStore, NodeNumber, ObjectId, ToStore};

const NODES: u32 = 3;
const OBJECTS: u64 = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A process stores an object, for the first time or again.
    Store(u64, u32),
    Want(u64, u32),
    /// The first fetch of a store ends.
    End(u32, bool),
    Drop(u64, u32),
    Free(u64),
    LoseNode(u32),
    /// A store is started again, without any object.
    Restart(u32),
    /// What no node has is given up.
    Lose(u64),
    ToStore(u32),
    FromStore(u32),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (object, node) = (1..=OBJECTS, 0..NODES);
    let step = prop_oneof![
        3 => (object.clone(), node.clone()).prop_map(|(object, node)| Step::Store(object, node)),
        6 => (object.clone(), node.clone()).prop_map(|(object, node)| Step::Want(object, node)),
        6 => (node.clone(), any::<bool>()).prop_map(|(node, ok)| Step::End(node, ok)),
        2 => (object.clone(), node.clone()).prop_map(|(object, node)| Step::Drop(object, node)),
        1 => object.clone().prop_map(Step::Free),
        1 => node.clone().prop_map(Step::LoseNode),
        1 => node.clone().prop_map(Step::Restart),
        1 => object.prop_map(Step::Lose),
        8 => node.clone().prop_map(Step::ToStore),
        8 => node.prop_map(Step::FromStore),
    ];
    prop::collection::vec(step, 0..150)
}

#[derive(Debug, Default)]
struct Store {
    has: BTreeSet<ObjectId>,
    /// Those that a process of the node has stored: they are never dropped.
    originals: BTreeSet<ObjectId>,
    /// What its processes wait for.
    wanted: BTreeSet<ObjectId>,
    /// With the source.
    fetching: VecDeque<(ObjectId, NodeNumber)>,
    to: VecDeque<ToStore>,
    from: VecDeque<FromStore>,
}

#[derive(Debug, Default)]
struct Model {
    fetches: Fetches,
    stores: BTreeMap<NodeNumber, Store>,
    /// By what was heard.
    places: BTreeMap<(ObjectId, NodeNumber), PlaceModel>,
    /// The fetches that were begun and not reported, by the object and who fetches it.
    begun: BTreeMap<(ObjectId, NodeNumber), VecDeque<BegunFetch>>,
    freed: BTreeSet<ObjectId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceModel {
    Copy,
    Original,
}

#[derive(Debug, Clone, Copy)]
struct BegunFetch {
    from: NodeNumber,
    wish: WishModel,
}

/// The wish that a fetch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WishModel {
    Lives,
    /// It lives, and the object has come to the source since the fetch began.
    Outdated,
    Ended,
}

fn object(number: u64) -> ObjectId {
    ObjectId { maker: member(2), number }
}

impl Model {
    fn store(&mut self, node: NodeNumber) -> &mut Store {
        self.stores.entry(node).or_default()
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Store(number, node) => self.stored(object(number), NodeNumber(node)),
            Step::Want(number, node) => self.want(object(number), NodeNumber(node)),
            Step::End(node, ok) => self.end(NodeNumber(node), ok),
            Step::Drop(number, node) => {
                let store = self.store(NodeNumber(node));
                if !store.originals.contains(&object(number)) && store.has.remove(&object(number)) {
                    store.from.push_back(FromStore::Dropped { object: object(number) });
                }
            }
            Step::Free(number) => self.free(object(number)),
            Step::LoseNode(node) => {
                let node = NodeNumber(node);
                self.stores.insert(node, Store::default());
                self.places.retain(|(_, place), _| *place != node);
                self.begun.retain(|(_, by), _| *by != node);
                self.change(|it, told| it.node_lost(node, NextStore::None, told));
            }
            Step::Restart(node) => {
                let node = NodeNumber(node);
                self.stores.insert(node, Store::default());
                let mut before = std::mem::take(&mut self.places);
                let expected = before.extract_if(.., |(_, place), _| *place == node).collect::<Vec<_>>();
                self.places = before;
                self.begun.retain(|(_, by), _| *by != node);
                self.change(|it, told| it.node_lost(node, NextStore::Follows, told));
                let originals = expected.into_iter().filter(|(_, kind)| *kind == PlaceModel::Original);
                originals.for_each(|((object, place), _)| self.put(object, place));
                self.change(|it, told| it.node_listens(node, told));
            }
            Step::Lose(number) => self.lose(object(number)),
            Step::ToStore(node) => _ = self.deliver(NodeNumber(node)),
            Step::FromStore(node) => _ = self.hear(NodeNumber(node)),
        }
    }

    fn stored(&mut self, object: ObjectId, node: NodeNumber) {
        // It is made again only when the coordinator knows of no place.
        let has_place = self.places.keys().any(|(it, _)| *it == object);
        if has_place || self.freed.contains(&object) {
            return;
        }
        let store = self.store(node);
        store.has.insert(object);
        store.originals.insert(object);
        store.wanted.remove(&object);
        self.put(object, node);
        self.change(|it, told| it.stored(object, 9, StoredAt::Place(node), told));
    }

    fn put(&mut self, object: ObjectId, node: NodeNumber) {
        self.places.insert((object, node), PlaceModel::Original);
        self.outdate_fetches(object, node);
    }

    /// A node has an object from now on: a fetch that began before may be answered without it.
    fn outdate_fetches(&mut self, object: ObjectId, node: NodeNumber) {
        let begun = self.begun.iter_mut().filter(|((it, _), _)| *it == object);
        let of_node = begun.flat_map(|(_, begun)| begun).filter(|fetch| fetch.from == node);
        for fetch in of_node.filter(|fetch| fetch.wish == WishModel::Lives) {
            fetch.wish = WishModel::Outdated;
        }
    }

    fn want(&mut self, object: ObjectId, node: NodeNumber) {
        let is_freed = self.freed.contains(&object);
        let store = self.store(node);
        if !is_freed && !store.has.contains(&object) && store.wanted.insert(object) {
            store.from.push_back(FromStore::Wants { object });
        }
    }

    /// Fetches that were begun for these go on without a wish.
    fn end_wishes(&mut self, which: impl Fn((ObjectId, NodeNumber)) -> bool) {
        for (_, begun) in self.begun.iter_mut().filter(|(key, _)| which(**key)) {
            begun.iter_mut().for_each(|fetch| fetch.wish = WishModel::Ended);
        }
    }

    fn end(&mut self, node: NodeNumber, ok: bool) {
        let Some((object, from)) = self.store(node).fetching.pop_front() else { return };
        let source_has = self.store(from).has.contains(&object);
        let store = self.store(node);
        let result = match (store.has.contains(&object), source_has, ok) {
            (true, _, _) => Ok(()),
            (false, false, _) => Err(FetchFailure::Missing),
            (false, true, true) => {
                store.has.insert(object);
                store.wanted.remove(&object);
                Ok(())
            }
            (false, true, false) => Err(FetchFailure::Failed("it broke".to_owned())),
        };
        store.from.push_back(FromStore::Fetched { object, result });
    }

    fn free(&mut self, object: ObjectId) {
        if self.fetches.is_known(object) && self.freed.insert(object) {
            self.places.retain(|(it, _), _| *it != object);
            self.end_wishes(|(it, _)| it == object);
            let mut places = FreedPlaces::Told;
            self.change(|it, told| places = it.freed(object, told));
            if places == FreedPlaces::Unknown {
                (0..NODES).for_each(|node| {
                    self.store(NodeNumber(node)).to.push_back(ToStore::Free { object });
                });
            }
        }
    }

    fn lose(&mut self, object: ObjectId) {
        if self.fetches.is_missed(object) {
            assert!(!self.places.keys().any(|(it, _)| *it == object), "{object} has a place");
            let error = CallError::ObjectLost("gone".to_owned());
            self.change(|it, told| it.lose(object, &error, told));
        }
    }

    /// A store takes what it is told.
    fn deliver(&mut self, node: NodeNumber) -> bool {
        let store = self.store(node);
        let Some(frame) = store.to.pop_front() else { return false };
        match frame {
            ToStore::Fetch { object, .. } if store.has.contains(&object) => {
                store.from.push_back(FromStore::Fetched { object, result: Ok(()) });
            }
            ToStore::Fetch { object, from, .. } if from == node => {
                let result = Err(FetchFailure::Missing);
                store.from.push_back(FromStore::Fetched { object, result });
            }
            ToStore::Fetch { object, from, .. } => store.fetching.push_back((object, from)),
            ToStore::Lost { object, .. } => _ = store.wanted.remove(&object),
            ToStore::Free { object } => {
                store.has.remove(&object);
                store.originals.remove(&object);
                store.wanted.remove(&object);
                // Each fetch is reported once, however it ends.
                let fetching = store.fetching.len();
                store.fetching.retain(|(it, _)| *it != object);
                for _ in store.fetching.len()..fetching {
                    let result = Err(FetchFailure::Failed("it was freed".to_owned()));
                    store.from.push_back(FromStore::Fetched { object, result });
                }
            }
            ToStore::Keep { object } => {
                if store.has.contains(&object) {
                    store.originals.insert(object);
                }
            }
            ToStore::Forget { .. } | ToStore::Tell { .. } => unreachable!("{frame:?}"),
        }
        true
    }

    /// The coordinator hears a store.
    fn hear(&mut self, node: NodeNumber) -> bool {
        let Some(frame) = self.store(node).from.pop_front() else { return false };
        match frame {
            FromStore::Wants { object } => {
                self.change(|it, told| it.wants(object, node, told));
                // The coordinator knows what it has freed.
                if self.freed.contains(&object) {
                    self.lose(object);
                }
            }
            FromStore::Fetched { object, result } => {
                let begun = self.begun.get_mut(&(object, node)).and_then(VecDeque::pop_front);
                match (&result, begun.map(|fetch| (fetch.wish, fetch.from))) {
                    (Ok(()), Some((WishModel::Lives | WishModel::Outdated, _))) => {
                        if let Entry::Vacant(place) = self.places.entry((object, node)) {
                            place.insert(PlaceModel::Copy);
                            self.outdate_fetches(object, node);
                        }
                    }
                    (Err(FetchFailure::Missing), Some((WishModel::Lives, from))) => {
                        self.places.remove(&(object, from));
                    }
                    (Ok(()) | Err(_), _) => {}
                }
                self.change(|it, told| it.fetched(object, node, result, told));
            }
            FromStore::Dropped { object } => {
                if self.places.get(&(object, node)) == Some(&PlaceModel::Copy) {
                    self.places.remove(&(object, node));
                }
                self.change(|it, told| it.dropped(object, node, told));
            }
            FromStore::Listens { .. } | FromStore::Told { .. } => unreachable!("{frame:?}"),
        }
        true
    }

    /// Every fetch is from a node that has the object, and none serves more than two.
    fn change(&mut self, change: impl FnOnce(&mut Fetches, &mut StoreFrames)) {
        let mut told = StoreFrames::new();
        change(&mut self.fetches, &mut told);
        for (node, frame) in told {
            if let ToStore::Fetch { object, from, .. } = frame {
                assert!(self.places.contains_key(&(object, from)), "{from} does not have {object}");
                let begun = self.begun.entry((object, node)).or_default();
                let twice = begun.iter().any(|fetch| fetch.wish != WishModel::Ended);
                assert!(!twice, "{node} fetches {object} twice");
                begun.push_back(BegunFetch { from, wish: WishModel::Lives });
                let others = self.begun.iter().filter(|((_, by), _)| *by != from);
                let serves = others.flat_map(|(_, begun)| begun).filter(|fetch| fetch.from == from).count();
                assert!(serves <= 2, "{from} serves {serves}");
            }
            if let ToStore::Keep { object } = frame {
                let place = self.places.insert((object, node), PlaceModel::Original);
                assert_eq!(place, Some(PlaceModel::Copy), "{object} is kept on {node}");
            }
            self.store(node).to.push_back(frame);
        }
        self.check_originals();
    }

    /// Of what is somewhere, one place may not drop it.
    fn check_originals(&self) {
        let is_original = |object| {
            let of_object = self.places.iter().filter(move |((it, _), _)| *it == object);
            of_object.map(|(_, kind)| *kind).any(|kind| kind == PlaceModel::Original)
        };
        for (object, _) in self.places.keys() {
            assert!(is_original(*object), "{object} has copies alone");
        }
    }

    /// Whatever is under way ends well; what no node has is given up.
    fn settle(&mut self) {
        loop {
            let mut has_moved = false;
            for node in (0..NODES).map(NodeNumber) {
                has_moved |= self.deliver(node) | self.hear(node) | !self.store(node).fetching.is_empty();
                self.end(node, true);
            }
            if !has_moved {
                let missed = self.fetches.missed();
                if missed.is_empty() {
                    return;
                }
                missed.into_iter().for_each(|object| self.lose(object));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_wish_has_one_answer_and_nothing_is_left(steps in steps()) {
        let mut model = Model::default();
        for step in steps {
            model.take(step);
        }
        model.settle();
        for (node, store) in &model.stores {
            prop_assert!(store.wanted.is_empty(), "{node} waits for {:?}", store.wanted);
            for object in store.has.iter().filter(|object| !model.freed.contains(object)) {
                prop_assert!(model.places.contains_key(&(*object, *node)), "nobody knows that {node} has {object}");
            }
        }
        (1..=OBJECTS).for_each(|number| model.take(Step::Free(number)));
        model.settle();
        prop_assert!(model.fetches.is_empty(), "{:?}", model.fetches);
        for (node, store) in &model.stores {
            prop_assert!(store.has.is_empty(), "{node} has {:?}", store.has);
        }
    }
}
