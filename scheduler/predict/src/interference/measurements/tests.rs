//! Tables that can be read, and the errors of those that cannot.

use cohabit_policy::interference::{MeasuredSet, SetOutcome};
use cohabit_types::{ModelFamily, SharingStrategy};

use super::*;

/// A table as the profiler writes it: one workload alone, a pair, and a pair that did not fit.
const TABLE: &str = "\
set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible,\
workload,precision,solo_spread,rate_spread,family,op_Conv,parameters,solo_sm_active
1,NVIDIA H200,exclusive,resnet50,64,10,10,2e9,2e9,0.9,0.9,true,r,bf16,0.01,0.01,cnn,53,25557032,0.7
2,NVIDIA H200,mps,resnet50,64,10,8,2e9,2e9,0.9,0.99,true,r,bf16,0.01,0.02,cnn,53,25557032,0.7
2,NVIDIA H200,mps,gpt2,8,4,2,4e9,4000000000,0.8,0.99,true,g,bf16,0.01,0.02,transformer,,,
3,NVIDIA H200,mps,gpt2,8,4,,4e9,,0.8,,false,g,bf16,0.01,,transformer,,,
3,NVIDIA H200,mps,gpt2,8,4,,4e9,,0.8,,false,g,bf16,0.01,,transformer,,,
";

const PAIRS: &str = "\
source,gpu,model1,batch1,model2,batch2,co1,co2,iso1,iso2,n1,n2,nsum,feasible
oracle,p100,ResNet-50,16,CycleGAN,0,5.0,2.0,8.0,2.0,0.625,1.0,1.625,1
sim,v100,A,1,B,1,1,1,1,1,1,1,2,1
oracle,k80,LM,5,ResNet-50,128,0,0,1.5,0.5,0,0,0,0
";

fn sets(text: &str, format: MeasurementFormat) -> Vec<MeasuredSet> {
    read(text.as_bytes(), Some(format)).unwrap().sets
}

fn refusal(text: &str, format: MeasurementFormat) -> String {
    read(text.as_bytes(), Some(format)).unwrap_err().to_string()
}

#[test]
fn rows_of_a_set_become_one_measurement() {
    let sets = sets(TABLE, MeasurementFormat::ColocationSet);
    let [alone, pair, misfit] = &sets[..] else { panic!("{sets:?}") };
    assert_eq!((alone.set.members.len(), alone.set.sharing), (1, Some(SharingStrategy::Exclusive)));
    assert_eq!((pair.set.gpu.name(), pair.set.sharing), ("nvidia h200", Some(SharingStrategy::Mps)));
    let SetOutcome::Ran(observed) = &pair.outcome else { panic!("{pair:?}") };
    assert_eq!((observed[0].slowdown, observed[1].slowdown), (1.25, 2.0));
    assert_eq!((observed[1].memory, observed[1].utilization), (Some(4e9), Some(0.99)));
    assert_eq!((misfit.set.members.len(), &misfit.outcome), (2, &SetOutcome::DidNotFit));
}

#[test]
fn descriptions_of_members_are_kept() {
    let member = &sets(TABLE, MeasurementFormat::ColocationSet)[1].set.members[0];
    assert_eq!(member.configuration().to_string(), "resnet50 (64) bf16");
    assert_eq!((member.family, member.features.parameters), (Some(ModelFamily::Cnn), Some(25_557_032.0)));
    assert_eq!(member.features.operators, [("Conv".to_owned(), 53.0)].into());
    assert_eq!((member.solo.rate, member.solo.utilization), (Some(10.0), Some(0.9)));
    assert_eq!(member.solo.others, [("sm_active".to_owned(), 0.7)].into());
    assert_eq!(sets(TABLE, MeasurementFormat::ColocationSet)[2].set.members[0].features.parameters, None);
}

#[test]
fn only_gavels_pairs_of_the_oracle_are_read() {
    let sets = sets(PAIRS, MeasurementFormat::GavelPairs);
    let [pair, misfit] = &sets[..] else { panic!("{sets:?}") };
    let SetOutcome::Ran(observed) = &pair.outcome else { panic!("{pair:?}") };
    assert_eq!((observed[0].slowdown, observed[1].slowdown), (1.6, 1.0));
    let [one, other] = &pair.set.members[..] else { panic!("{pair:?}") };
    assert_eq!((one.batch, other.batch), (Some(16), None));
    assert_eq!((one.family, misfit.set.members[0].family), (Some(ModelFamily::Cnn), Some(ModelFamily::Rnn)));
    assert_eq!((misfit.set.gpu.name(), &misfit.outcome), ("k80", &SetOutcome::DidNotFit));
}

#[test]
fn errors_name_line_and_column() {
    let changed =
        |from: &str, to: &str| refusal(&TABLE.replacen(from, to, 1), MeasurementFormat::ColocationSet);
    assert_eq!(
        changed(",64,10,8,", ",64,10,fast,"),
        "line 3, column 'rate': 'fast': expected a number of at least 0"
    );
    assert!(changed(",64,10,8,", ",64,10,0,").starts_with("line 3, column 'rate': it must be above 0"));
    assert!(changed(",64,10,8,", ",64,10,1e-320,").starts_with("line 3, column 'rate': it is out of range"));
    assert!(changed(",64,10,8,", ",64,,8,").starts_with("line 3, column 'solo_rate': it must be above 0"));
    assert_eq!(
        changed(",64,10,8,", ",many,10,8,"),
        "line 3, column 'batch': 'many': expected a whole number"
    );
    assert!(
        changed("2,NVIDIA H200,mps,gpt2", "2,NVIDIA H200,spread,gpt2")
            .starts_with("line 4, column 'sharing'")
    );
    assert!(
        changed("2,NVIDIA H200,mps,gpt2", "2,A100,mps,gpt2").starts_with("line 4: set 2 has another gpu")
    );
    assert_eq!(changed("2,NVIDIA H200,mps,gpt2", "2,,mps,gpt2"), "line 4, column 'gpu': the cell is empty");
    assert!(
        changed(",0.7\n2", ",NaN\n2")
            .starts_with("line 2, column 'solo_sm_active': 'NaN': expected a number")
    );
    assert!(
        changed("solo_rate,", "alone,")
            .starts_with("line 1: missing column solo_rate: files in the format co-location have")
    );
    assert!(
        refusal(&PAIRS.replace("8.0,2.0,0.6", "x,2.0,0.6"), MeasurementFormat::GavelPairs)
            .contains("line 2, column 'iso1'")
    );
    assert!(
        refusal(TABLE, MeasurementFormat::GavelPairs).starts_with("line 1: missing columns source, model1")
    );
    assert!(refusal(&(TABLE.to_owned() + "4,x\n"), MeasurementFormat::ColocationSet).contains("line: 7"));
    assert_eq!(
        refusal(TABLE.lines().next().unwrap(), MeasurementFormat::ColocationSet),
        "the file has no measurements"
    );
}

#[test]
fn formats_parse_from_their_names() {
    for format in <MeasurementFormat as cohabit_tables::TableFormat>::ALL {
        assert_eq!(format.to_string().parse(), Ok(*format));
    }
    assert!("xls".parse::<MeasurementFormat>().unwrap_err().to_string().contains("co-location, gavel-pairs"));
}

#[test]
fn the_first_line_tells_the_format() {
    let detected = |text: &str| read(text.as_bytes(), None).map(|table| (table.format, table.sets.len()));
    assert_eq!(detected(TABLE).unwrap(), (MeasurementFormat::ColocationSet, 3));
    assert_eq!(detected(PAIRS).unwrap(), (MeasurementFormat::GavelPairs, 2));
    assert_eq!(detected(&format!("\u{feff}{}", TABLE.replace('\n', "\r\n"))).unwrap().1, 3);
    let refusal = detected("submit_s,duration_s,gpus\n0,1,1\n").unwrap_err().to_string();
    for words in [
        "line 1: unknown co-location table format",
        "'submit_s, duration_s, gpus'",
        "co-location (set,gpu",
        "gavel-pairs (source",
    ] {
        assert!(refusal.contains(words), "{words}: {refusal}");
    }
}
