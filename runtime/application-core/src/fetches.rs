//! Which nodes have an object, and from which one each store fetches what it wants.
//!
//! A store says once that it wants an object, and gets one answer: a node to fetch it from, or that there is
//! none. A source serves few fetches at a time, so that a node which has got a copy serves others meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::errors::CallError;
use crate::ids::{NodeNumber, ObjectId};
use crate::limits::{MAX_FETCH_FAILURES, MAX_FETCHES_FROM};
use crate::node_frames::{FetchFailure, ToStore};

/// The stored objects that somebody holds, and those that stores want.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    objects: BTreeMap<ObjectId, TrackedObject>,
    /// How many fetches each node serves; none without any.
    serving: BTreeMap<NodeNumber, usize>,
    /// The wishes that wait until one of these nodes has time, in the order in which they came.
    queues: BTreeMap<NodeNumber, BTreeSet<QueuedWish>>,
    /// The objects that are wanted and that no node has.
    unplaced: BTreeSet<ObjectId>,
    /// What the next store of a node has when it listens, perhaps: processes have put it there meanwhile.
    expected: BTreeMap<NodeNumber, BTreeSet<ObjectId>>,
    /// What was answered by `Fetch` and not reported when its wish ended: the sources that serve it.
    ending: BTreeMap<(ObjectId, NodeNumber), VecDeque<Option<NodeNumber>>>,
    last: u64,
}

type QueuedWish = (u64, ObjectId, NodeNumber);

#[derive(Debug, Default)]
struct TrackedObject {
    /// Its size, once its maker has said it.
    bytes: Option<u64>,
    places: BTreeMap<NodeNumber, PlaceKind>,
    /// Nodes whose next stores may have it.
    expected: BTreeSet<NodeNumber>,
    wishes: BTreeMap<NodeNumber, Wish>,
    /// The node that had it last and was lost.
    lost_with: Option<NodeNumber>,
    copying: Copying,
}

/// What a node has of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceKind {
    /// It was fetched, and may be dropped.
    Copy,
    /// A process of the node has stored it, or it is to be kept. A store that says then that it has dropped
    /// a copy says so late.
    Original,
}

/// Whether others than those that are places may have parts of it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Copying {
    #[default]
    Original,
    /// It was made again, somewhere.
    Remade,
}

/// What a store wants.
#[derive(Debug)]
struct Wish {
    state: WishState,
    /// How often each place has failed.
    failures: BTreeMap<NodeNumber, u32>,
    answer: ExpectedAnswer,
}

/// What an answer says of the node that was asked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ExpectedAnswer {
    #[default]
    Current,
    /// The object has come there since: that it was missing means nothing.
    Outdated,
}

impl Wish {
    const fn new() -> Wish {
        Wish { state: WishState::Unplaced, failures: BTreeMap::new(), answer: ExpectedAnswer::Current }
    }
}

#[derive(Debug)]
enum WishState {
    /// No node has the object.
    Unplaced,
    /// It is asked whether it does not have the object after all, as was believed: its process may have
    /// stored it meanwhile.
    Confirming,
    /// All that have it serve others.
    Queued {
        order: u64,
        at: Vec<NodeNumber>,
    },
    Fetching {
        from: NodeNumber,
    },
}

/// Whether a process has put an object where others can fetch it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredAt {
    /// The store of its node lives.
    Place(NodeNumber),
    /// The next store of its node may have it.
    Expected(NodeNumber),
    /// Its node has no store.
    Nowhere,
}

/// What stores are told.
pub(crate) type StoreFrames = Vec<(NodeNumber, ToStore)>;

impl Fetches {
    /// Whether nobody holds or wants anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether it was said that an object is stored.
    pub(crate) fn is_known(&self, object: ObjectId) -> bool {
        self.objects.get(&object).is_some_and(|it| it.bytes.is_some())
    }

    /// Whether an object is wanted that no node has.
    pub(crate) fn is_missed(&self, object: ObjectId) -> bool {
        self.unplaced.contains(&object)
    }

    /// The objects that are wanted and that no node has.
    pub(crate) fn missed(&self) -> Vec<ObjectId> {
        self.unplaced.iter().copied().collect()
    }

    /// The node that had an object last and was lost.
    pub(crate) fn lost_with(&self, object: ObjectId) -> Option<NodeNumber> {
        self.objects.get(&object)?.lost_with
    }

    /// The nodes that have each object.
    pub(crate) fn places(&self) -> BTreeMap<ObjectId, Vec<NodeNumber>> {
        let places = |it: &TrackedObject| it.places.keys().copied().collect();
        self.objects.iter().map(|(object, it)| (*object, places(it))).collect()
    }

    /// A process has stored an object of this size.
    pub(crate) fn stored(&mut self, object: ObjectId, bytes: u64, at: StoredAt, told: &mut StoreFrames) {
        let it = self.objects.entry(object).or_default();
        if it.bytes.replace(bytes).is_some() {
            it.copying = Copying::Remade;
        }
        match at {
            StoredAt::Place(node) => self.add_place(object, node, PlaceKind::Original, told),
            StoredAt::Expected(node) => self.expect(object, node),
            StoredAt::Nowhere => {}
        }
        self.note_unplaced(object);
    }

    /// The store of a node wants an object.
    pub(crate) fn wants(&mut self, object: ObjectId, node: NodeNumber, told: &mut StoreFrames) {
        let it = self.objects.entry(object).or_default();
        if it.wishes.contains_key(&node) {
            return;
        }
        it.wishes.insert(node, Wish::new());
        self.advance(object, node, told);
        self.note_unplaced(object);
    }

    /// A store has fetched an object, or not.
    pub(crate) fn fetched(
        &mut self,
        object: ObjectId,
        node: NodeNumber,
        result: Result<(), FetchFailure>,
        told: &mut StoreFrames,
    ) {
        if let Some(from) = self.take_ending(object, node) {
            return self.release(from, told);
        }
        let Some(it) = self.objects.get_mut(&object) else { return };
        let Some(wish) = it.wishes.get_mut(&node) else { return };
        let from = match wish.state {
            WishState::Fetching { from } => Some(from),
            WishState::Confirming => None,
            WishState::Unplaced | WishState::Queued { .. } => return,
        };
        match result {
            Ok(()) => {
                it.wishes.remove(&node);
                self.add_place(object, node, PlaceKind::Copy, told);
            }
            Err(failure) => {
                wish.state = WishState::Unplaced;
                self.not_fetched(object, (node, from), failure, told);
            }
        }
        self.release(from, told);
        self.note_unplaced(object);
    }

    /// A store still wants what it could not fetch from a node, or does not have itself.
    fn not_fetched(
        &mut self,
        object: ObjectId,
        (node, from): (NodeNumber, Option<NodeNumber>),
        failure: FetchFailure,
        told: &mut StoreFrames,
    ) {
        let Some(it) = self.objects.get_mut(&object) else { return };
        let Some(wish) = it.wishes.get_mut(&node) else { return };
        let answer = std::mem::take(&mut wish.answer);
        let text = match (from, failure) {
            // It was believed to have it.
            (None, _) | (Some(_), FetchFailure::Missing) if answer == ExpectedAnswer::Outdated => {
                return self.advance(object, node, told);
            }
            (None, _) => return self.lose_place(object, node, told),
            (Some(from), FetchFailure::Missing) => return self.lose_place(object, from, told),
            (Some(_), FetchFailure::Failed(text)) => text,
        };
        if let Some(from) = from.filter(|from| it.places.contains_key(from)) {
            *wish.failures.entry(from).or_insert(0) += 1;
        }
        let failures: u32 = wish.failures.values().sum();
        if failures < MAX_FETCH_FAILURES {
            return self.advance(object, node, told);
        }
        it.wishes.remove(&node);
        let text = format!("it could not be fetched, {failures} times; the last time: {text}");
        told.push((node, ToStore::Lost { object, error: CallError::ObjectLost(text) }));
    }

    /// A node turns out not to have an object.
    fn lose_place(&mut self, object: ObjectId, node: NodeNumber, told: &mut StoreFrames) {
        if let Some(it) = self.objects.get_mut(&object)
            && it.places.remove(&node).is_some()
        {
            it.lost_with = Some(node);
        }
        self.keep_last(object, told);
        self.advance_all(object, told);
    }

    /// If nothing is left of an object but copies, one of them is not to be dropped.
    fn keep_last(&mut self, object: ObjectId, told: &mut StoreFrames) {
        let Some(it) = self.objects.get_mut(&object) else { return };
        if it.places.values().all(|kind| *kind == PlaceKind::Copy)
            && let Some((node, kind)) = it.places.iter_mut().next()
        {
            *kind = PlaceKind::Original;
            told.push((*node, ToStore::Keep { object }));
        }
    }

    /// A store has dropped a copy.
    pub(crate) fn dropped(&mut self, object: ObjectId, node: NodeNumber, told: &mut StoreFrames) {
        let it = self.objects.get(&object);
        if it.is_some_and(|it| it.places.get(&node) == Some(&PlaceKind::Copy)) {
            self.remove_place(object, node, told);
        }
    }

    /// Nobody holds an object any more: whether anything was known of where it is.
    pub(crate) fn freed(&mut self, object: ObjectId, told: &mut StoreFrames) -> FreedPlaces {
        let wishes: Vec<NodeNumber> =
            self.objects.get(&object).into_iter().flat_map(|it| it.wishes.keys().copied()).collect();
        let mut have = BTreeSet::new();
        for node in wishes {
            match self.end_wish(object, node) {
                Some(WishState::Fetching { .. } | WishState::Confirming) => _ = have.insert(node),
                Some(WishState::Queued { .. } | WishState::Unplaced) => {
                    let error = CallError::ObjectLost("nobody holds it any more".to_owned());
                    told.push((node, ToStore::Lost { object, error }));
                }
                None => {}
            }
        }
        self.unplaced.remove(&object);
        let Some(it) = self.objects.remove(&object) else { return FreedPlaces::Unknown };
        match (it.copying, it.bytes) {
            (Copying::Original, Some(_)) => {
                have.extend(it.places.into_keys());
                told.extend(have.into_iter().map(|node| (node, ToStore::Free { object })));
                FreedPlaces::Told
            }
            (Copying::Remade, _) | (Copying::Original, None) => FreedPlaces::Unknown,
        }
    }

    /// The wishes for an object that no node has end.
    pub(crate) fn lose(&mut self, object: ObjectId, error: &CallError, told: &mut StoreFrames) {
        let Some(it) = self.objects.get(&object) else { return };
        let is_unplaced = |wish: &Wish| matches!(wish.state, WishState::Unplaced);
        let all = it.wishes.iter().filter(|(_, wish)| is_unplaced(wish));
        for node in all.map(|(node, _)| *node).collect::<Vec<_>>() {
            self.end_wish(object, node);
            told.push((node, ToStore::Lost { object, error: error.clone() }));
        }
        self.note_unplaced(object);
    }

    /// A node has lost its objects, and wants nothing any more. Its next store may have what its processes
    /// have put there before that was known, if there is one.
    pub(crate) fn node_lost(&mut self, node: NodeNumber, next: NextStore, told: &mut StoreFrames) {
        let objects: Vec<ObjectId> = self.objects.keys().copied().collect();
        for object in objects {
            self.end_wish(object, node);
            if let Some(it) = self.objects.get_mut(&object) {
                if next == NextStore::None {
                    it.expected.remove(&node);
                }
                let place = it.places.remove(&node);
                if place.is_some() {
                    it.lost_with = Some(node);
                }
                if place == Some(PlaceKind::Original) && next == NextStore::Follows {
                    self.expect(object, node);
                }
                self.keep_last(object, told);
                self.advance_all(object, told);
            }
        }
        if next == NextStore::None {
            self.expected.remove(&node);
        }
        // It will report nothing of these.
        let ended = self.ending.extract_if(.., |(_, by), _| *by == node);
        let released: Vec<Option<NodeNumber>> = ended.flat_map(|(_, from)| from).collect();
        for from in released {
            self.release(from, told);
        }
    }

    /// The next store of a node listens: it may have what was put there, and has to free the rest of that.
    pub(crate) fn node_listens(&mut self, node: NodeNumber, told: &mut StoreFrames) {
        for object in self.expected.remove(&node).unwrap_or_default() {
            if let Some(it) = self.objects.get_mut(&object) {
                it.expected.remove(&node);
                self.add_place(object, node, PlaceKind::Original, told);
            } else {
                told.push((node, ToStore::Free { object }));
            }
        }
    }

    /// Nobody waits for the next store of a node any more. If it comes, it may have what was put there.
    pub(crate) fn expect_no_more(&mut self, node: NodeNumber) {
        for object in self.expected.get(&node).cloned().unwrap_or_default() {
            if let Some(it) = self.objects.get_mut(&object)
                && it.expected.remove(&node)
            {
                it.lost_with = Some(node);
                self.note_unplaced(object);
            }
        }
    }

    fn expect(&mut self, object: ObjectId, node: NodeNumber) {
        if let Some(it) = self.objects.get_mut(&object) {
            it.expected.insert(node);
            self.expected.entry(node).or_default().insert(object);
        }
    }

    fn add_place(&mut self, object: ObjectId, node: NodeNumber, kind: PlaceKind, told: &mut StoreFrames) {
        if let Some(it) = self.objects.get_mut(&object) {
            let before = it.places.get(&node).copied();
            if before.is_none() || kind == PlaceKind::Original {
                it.places.insert(node, kind);
                it.outdate_answers(node);
            }
        }
        // It may have been fetched from a node that was lost meanwhile.
        self.keep_last(object, told);
        self.advance_all(object, told);
    }

    fn remove_place(&mut self, object: ObjectId, node: NodeNumber, told: &mut StoreFrames) {
        let Some(it) = self.objects.get_mut(&object) else { return };
        if it.places.remove(&node).is_some() {
            self.advance_all(object, told);
        }
    }

    /// The places of an object have changed.
    fn advance_all(&mut self, object: ObjectId, told: &mut StoreFrames) {
        let Some(it) = self.objects.get(&object) else { return };
        let mut waiting: Vec<(u64, NodeNumber)> = Vec::new();
        for (node, wish) in &it.wishes {
            match wish.state {
                WishState::Unplaced => waiting.push((u64::MAX, *node)),
                WishState::Queued { order, .. } => waiting.push((order, *node)),
                WishState::Fetching { .. } | WishState::Confirming => {}
            }
        }
        waiting.sort_unstable();
        for (_, node) in waiting {
            self.advance(object, node, told);
        }
        self.note_unplaced(object);
    }

    /// Lets a wish that is not served begin, or wait for those that can serve it.
    fn advance(&mut self, object: ObjectId, node: NodeNumber, told: &mut StoreFrames) {
        let order = match self.take_from_queues(object, node) {
            Some(order) => order,
            None => {
                self.last += 1;
                self.last
            }
        };
        let Some(it) = self.objects.get_mut(&object) else { return };
        let (bytes, Some(wish)) = (it.bytes.unwrap_or(0), it.wishes.get_mut(&node)) else { return };
        if it.places.contains_key(&node) {
            // A store says of an object that it has that it has fetched it.
            (wish.state, wish.answer) = (WishState::Confirming, ExpectedAnswer::Current);
            return told.push((node, ToStore::Fetch { object, bytes, from: node }));
        }
        let failures = |place: &NodeNumber| wish.failures.get(place).copied().unwrap_or(0);
        let fewest = it.places.keys().map(failures).min();
        // A place that has failed is tried again when all have.
        let at: Vec<NodeNumber> =
            it.places.keys().copied().filter(|place| Some(failures(place)) == fewest).collect();
        let serving = |place: &NodeNumber| self.serving.get(place).copied().unwrap_or(0);
        let free = at.iter().copied().filter(|place| serving(place) < MAX_FETCHES_FROM);
        if let Some(from) = free.min_by_key(|place| (serving(place), *place)) {
            (wish.state, wish.answer) = (WishState::Fetching { from }, ExpectedAnswer::Current);
            *self.serving.entry(from).or_insert(0) += 1;
            told.push((node, ToStore::Fetch { object, bytes, from }));
        } else if at.is_empty() {
            wish.state = WishState::Unplaced;
        } else {
            for place in &at {
                self.queues.entry(*place).or_default().insert((order, object, node));
            }
            wish.state = WishState::Queued { order, at };
        }
    }

    /// A node serves one fetch less: the first that waits for it begins.
    fn release(&mut self, from: Option<NodeNumber>, told: &mut StoreFrames) {
        let Some(from) = from else { return };
        if let Some(count) = self.serving.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.serving.remove(&from);
            }
        }
        let first = self.queues.get(&from).and_then(|queue| queue.first().copied());
        if let Some((_, object, node)) = first {
            self.advance(object, node, told);
        }
    }

    /// A wish waits in no queue any more: its turn, if it has waited in one.
    fn take_from_queues(&mut self, object: ObjectId, node: NodeNumber) -> Option<u64> {
        let wish = self.objects.get_mut(&object)?.wishes.get_mut(&node)?;
        let WishState::Queued { order, at } = &wish.state else { return None };
        for place in at {
            if let Some(queue) = self.queues.get_mut(place) {
                queue.remove(&(*order, object, node));
                if queue.is_empty() {
                    self.queues.remove(place);
                }
            }
        }
        Some(*order)
    }

    /// Ends a wish. What it fetches is reported later, and until then its source has less time.
    fn end_wish(&mut self, object: ObjectId, node: NodeNumber) -> Option<WishState> {
        self.take_from_queues(object, node);
        let state = self.objects.get_mut(&object)?.wishes.remove(&node)?.state;
        let from = match state {
            WishState::Fetching { from } => Some(from),
            WishState::Confirming => None,
            WishState::Queued { .. } | WishState::Unplaced => return Some(state),
        };
        self.ending.entry((object, node)).or_default().push_back(from);
        Some(state)
    }

    /// A fetch is reported whose wish has ended before.
    fn take_ending(&mut self, object: ObjectId, node: NodeNumber) -> Option<Option<NodeNumber>> {
        let fetches = self.ending.get_mut(&(object, node))?;
        let from = fetches.pop_front();
        if fetches.is_empty() {
            self.ending.remove(&(object, node));
        }
        from
    }

    fn note_unplaced(&mut self, object: ObjectId) {
        let Some(it) = self.objects.get(&object) else { return };
        let is_wanted = it.wishes.values().any(|wish| matches!(wish.state, WishState::Unplaced));
        if is_wanted && it.expected.is_empty() {
            self.unplaced.insert(object);
        } else {
            self.unplaced.remove(&object);
        }
        if it.bytes.is_none() && it.wishes.is_empty() {
            self.objects.remove(&object);
        }
    }
}

impl TrackedObject {
    /// The object has come to a node: what the node was asked before, it may answer without it.
    fn outdate_answers(&mut self, node: NodeNumber) {
        for (by, wish) in &mut self.wishes {
            let asks_node = match wish.state {
                WishState::Fetching { from } => from == node,
                WishState::Confirming => *by == node,
                WishState::Unplaced | WishState::Queued { .. } => false,
            };
            if asks_node {
                wish.answer = ExpectedAnswer::Outdated;
            }
        }
    }
}

/// Whether the store of a node is followed by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStore {
    Follows,
    None,
}

/// Who has to be told that an object is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FreedPlaces {
    /// All that have it were told.
    Told,
    /// Any store may have it.
    Unknown,
}
