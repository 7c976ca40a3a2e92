//! Every number of the example in docs/SHARING.md is computed here, from the table that is printed there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cohabit_fair_share::{FairShares, GPU, Party, RecentUse, UseTerms, held_of_device};
use cohabit_types::{Bytes, Demand, GpuRequest, Share, ShareProject, ShareTable, Sharing, Span, Time};

const CAPACITY: u64 = 16 * GPU;
/// More than fits.
const MANY: u64 = 100 * GPU;
/// The whole use, in parts of which the guide speaks.
const USE: u128 = 100 << 40;

fn guide() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SHARING.md");
    fs::read_to_string(path).expect("the guide is there")
}

fn example(guaranteed: u64) -> FairShares {
    let project = |weight, guaranteed, users: &[&str]| ShareProject {
        weight,
        guaranteed,
        users: users.iter().map(|user| (*user).to_owned()).collect(),
        ..ShareProject::default()
    };
    let projects = BTreeMap::from([
        ("vision".to_owned(), project(2_000, guaranteed, &["ada", "ben"])),
        ("language".to_owned(), project(1_000, 0, &["cyd"])),
    ]);
    let mut shares = FairShares::new(Arc::new(ShareTable { projects, ..ShareTable::default() }));
    for user in ["ada", "ben", "cyd", "dora"] {
        shares.user(user);
    }
    shares
}

fn has_used(shares: &mut FairShares) {
    // Ada and ben used the same.
    for (user, percent) in [("ada", 375), ("ben", 375), ("cyd", 250)] {
        shares.set_usage(user, RecentUse { used: USE * percent / 1_000, ..RecentUse::default() });
    }
}

/// What vision, language and dora are entitled to, in GPUs.
fn entitled(shares: &FairShares, dora_wants: u64) -> [u64; 3] {
    let dora = shares.party("dora").expect("she is known");
    let division =
        shares.divide(Time::EPOCH, CAPACITY, |party| if party == dora { dora_wants } else { MANY });
    ["ada", "cyd", "dora"].map(|user| {
        let party: Party = shares.party(user).expect("they are known");
        let milli = division.projects[shares.project(party)].entitled;
        assert_eq!(milli % GPU, 0, "the example has whole GPUs");
        milli / GPU
    })
}

#[test]
fn the_table_of_the_example_is_computed() {
    let nobody = example(0);
    let mut used = example(0);
    has_used(&mut used);
    let mut guaranteed = example(8 * GPU);
    has_used(&mut guaranteed);
    let rows = [
        ("nobody used anything yet", entitled(&nobody, MANY)),
        ("vision used 75% of all use, language 25%, dora nothing", entitled(&used, MANY)),
        ("the same, and dora wants only 2", entitled(&used, 2 * GPU)),
        ("the same, and 8 are guaranteed to vision", entitled(&guaranteed, 2 * GPU)),
    ];
    let guide = guide();
    for (case, [vision, language, dora]) in rows {
        let row = format!("| {case} | {vision} | {language} | {dora} |");
        assert!(guide.contains(&row), "the guide has no row '{row}'");
    }
}

#[test]
fn ada_and_ben_divide_what_their_project_has() {
    let shares = example(0);
    let division = shares.divide(Time::EPOCH, CAPACITY, |_| MANY);
    let of = |user: &str| division.users[shares.party(user).expect("known").0 as usize].entitled;
    assert_eq!((of("ada"), of("ben")), (4 * GPU, 4 * GPU));
}

#[test]
fn what_counts_of_weights_and_of_use_is_computed() {
    let guide = guide();
    let mut shares = example(0);
    has_used(&mut shares);
    let division = shares.divide(Time::EPOCH, CAPACITY, |_| MANY);
    let factors = ["ada", "cyd", "dora"].map(|user| {
        let party = shares.party(user).expect("known");
        division.projects[shares.project(party)].factor
    });
    assert_eq!(factors, [500, 1_000, 2_000], "×0.5, ×1 and ×2 in the guide");

    let day = Time::EPOCH + Span::from_secs(86_400);
    let mut used = RecentUse::default();
    used.take(8 * GPU, UseTerms::default());
    // No time to fade: minute by minute that is less than a twentieth.
    let hours = |used: RecentUse| used.used as f64 / 3_600e6 / GPU as f64;
    let after_a_day = used.at(day, shares.decay());
    assert!((hours(after_a_day) / 192.0 - 1.0).abs() < 0.05, "{}", hours(after_a_day));
    let plain = RecentUse {
        held: 0,
        used: u128::from(8 * GPU) * u128::from(day.as_micros()),
        at: day,
        ..RecentUse::default()
    };
    let week_later = plain.at(day + Span::from_secs(7 * 86_400), shares.decay());
    let sentence = format!(
        "are {:.0} GPU hours when the day ends, and count {:.0} a week later",
        hours(plain),
        hours(week_later)
    );
    assert!(guide.replace('\n', " ").contains(&sentence), "{sentence}");
}

#[test]
fn what_a_part_of_a_gpu_counts_is_computed() {
    let demand = |gpu_memory| Demand {
        gpus: GpuRequest::Part(Share(300)),
        sharing: Sharing::Shared,
        gpu_memory,
        ..Demand::default()
    };
    let held = |memory: Option<u64>| {
        let claimed = memory.map(|gib| Bytes(gib << 30));
        held_of_device(&demand(claimed), Share(300), Some(Bytes(80 << 30))) as f64 / GPU as f64
    };
    let text = guide().replace('\n', " ");
    let sentence = format!(
        "`--gpus 0.3 --gpu-mem 40G` on a GPU of 80 GB counts {}; without `--gpu-mem` it counts {}",
        held(Some(40)),
        held(None)
    );
    assert!(text.contains(&sentence), "{sentence}");
}
