//! Programs that the attributes refuse, and what the compiler says of them.

#[test]
fn wrong_programs_are_refused_where_they_are_wrong() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
