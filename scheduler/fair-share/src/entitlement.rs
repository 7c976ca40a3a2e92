//! How the cluster is divided: guarantees first, the rest by weight and by what was used lately, to nobody
//! more than they want.

/// Thousandths.
const ONE: u64 = 1_000;

/// What one of several parties brings to the division. Amounts are in thousandths of a GPU.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct EntitlementClaim {
    /// The weight, in thousandths; at least 1.
    pub weight: u64,
    /// What counts of the weight now, in thousandths: see [`factor`].
    pub factor: u64,
    /// What it holds or waits for.
    pub wants: u64,
    /// What it gets before others get anything.
    pub guaranteed: u64,
    /// The most that it may have.
    pub limit: u64,
}

impl EntitlementClaim {
    const fn most(&self) -> u64 {
        if self.wants < self.limit { self.wants } else { self.limit }
    }

    const fn part(&self) -> u64 {
        self.weight * self.factor
    }
}

/// What counts of a weight, in thousandths: 2,000 for a party that used nothing, 1,000 for one that used its
/// part of all use, 500 for one that used half as much again or more. `used` of `all_used`, at a weight of
/// `weight` of `all_weights`.
#[must_use]
pub fn factor(used: u128, all_used: u128, weight: u64, all_weights: u64) -> u64 {
    if all_used == 0 || weight == 0 {
        return 2 * ONE;
    }
    // u / s = (used / all_used) * (all_weights / weight); small enough amounts do not overflow.
    let shift = (128 - all_used.leading_zeros()).saturating_sub(64);
    let (used, all_used) = (used >> shift, (all_used >> shift).max(1));
    let whole =
        (used * u128::from(ONE) / all_used).saturating_mul(u128::from(all_weights)) / u128::from(weight);
    u64::try_from(whole).map_or(ONE / 2, |part| (2 * ONE).saturating_sub(part)).clamp(ONE / 2, 2 * ONE)
}

/// Divides `capacity`, in thousandths of a GPU. The sum is at most the capacity; nobody gets more than they
/// want or may have. Guarantees that are more than there is shrink in proportion.
#[must_use]
pub fn entitlements(capacity: u64, claims: &[EntitlementClaim]) -> Vec<u64> {
    let guaranteed = |claim: &EntitlementClaim| claim.guaranteed.min(claim.most());
    let promised: u64 = claims.iter().map(guaranteed).sum();
    let shrunk = |amount: u64| match promised > capacity {
        true => (u128::from(amount) * u128::from(capacity) / u128::from(promised)) as u64,
        false => amount,
    };
    let mut shares: Vec<u64> = claims.iter().map(|claim| shrunk(guaranteed(claim))).collect();
    let mut rest = capacity - shares.iter().sum::<u64>();
    // Those who want the least of their part are served first, so whoever is left wants more than is left.
    let missing = |index: usize, shares: &[u64]| claims[index].most() - shares[index];
    let mut open: Vec<usize> = (0..claims.len()).filter(|index| missing(*index, &shares) > 0).collect();
    open.sort_by(|one, other| {
        let (of_one, of_other) = (missing(*one, &shares), missing(*other, &shares));
        let across = |amount: u64, claim: &EntitlementClaim| u128::from(amount) * u128::from(claim.part());
        across(of_one, &claims[*other]).cmp(&across(of_other, &claims[*one])).then(one.cmp(other))
    });
    let mut parts: u64 = open.iter().map(|index| claims[*index].part()).sum();
    for index in open {
        let part = claims[index].part();
        let fair = (u128::from(rest) * u128::from(part)).checked_div(u128::from(parts)).unwrap_or(0) as u64;
        let gets = fair.min(missing(index, &shares));
        shares[index] += gets;
        rest -= gets;
        parts -= part;
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of weight 1 and normal use, that wants so many thousandths.
    fn wants(wants: u64) -> EntitlementClaim {
        EntitlementClaim { weight: ONE, factor: ONE, wants, guaranteed: 0, limit: u64::MAX }
    }

    #[test]
    fn the_cluster_is_divided_by_weight_among_those_who_want_it() {
        // Computed by hand: 16 GPUs, weights 2 and 1; then the first wants only 4.
        let two = EntitlementClaim { weight: 2 * ONE, ..wants(100_000) };
        assert_eq!(entitlements(15_000, &[two, wants(100_000)]), [10_000, 5_000]);
        assert_eq!(
            entitlements(16_000, &[EntitlementClaim { wants: 4_000, ..two }, wants(100_000)]),
            [4_000, 12_000]
        );
        assert_eq!(entitlements(16_000, &[wants(2_000), wants(3_000)]), [2_000, 3_000]);
    }

    #[test]
    fn guarantees_come_first_and_shrink_where_nodes_are_lost() {
        let guaranteed = |amount, want| EntitlementClaim { guaranteed: amount, ..wants(want) };
        // 8 first, then 8 of 16 in equal parts.
        assert_eq!(entitlements(16_000, &[guaranteed(8_000, 90_000), wants(90_000)]), [12_000, 4_000]);
        assert_eq!(entitlements(16_000, &[guaranteed(8_000, 1_000), wants(90_000)]), [1_000, 15_000]);
        assert_eq!(
            entitlements(6_000, &[guaranteed(8_000, 9_000), guaranteed(4_000, 9_000)]),
            [4_000, 2_000]
        );
    }

    #[test]
    fn what_counts_of_a_weight_follows_use() {
        // Half of all weights: used nothing, its part, half as much again, all.
        let of_half = |used| factor(used, 1_000, 1, 2);
        assert_eq!([0, 250, 500, 750, 1_000].map(of_half), [2_000, 1_500, 1_000, 500, 500]);
        assert_eq!(factor(0, 0, 1, 2), 2_000);
        assert_eq!(
            factor(u128::MAX / 2, u128::MAX, 1, 1),
            1_501,
            "large amounts lose only their last digits"
        );
    }

    fn claims() -> impl Strategy<Value = Vec<EntitlementClaim>> {
        let claim = (1..5_000_u64, 500..=2_000_u64, 0..40_000_u64, 0..10_000_u64, 0..60_000_u64).prop_map(
            |(weight, factor, wants, guaranteed, limit)| EntitlementClaim {
                weight,
                factor,
                wants,
                guaranteed,
                limit,
            },
        );
        prop::collection::vec(claim, 1..12)
    }

    proptest! {
        #[test]
        fn nobody_gets_too_much_or_too_little(capacity in 0..100_000_u64, claims in claims()) {
            let shares = entitlements(capacity, &claims);
            prop_assert!(shares.iter().sum::<u64>() <= capacity);
            let promised: u64 = claims.iter().map(|it| it.guaranteed.min(it.most())).sum();
            let wanted: u64 = claims.iter().map(EntitlementClaim::most).sum();
            for (share, claim) in shares.iter().zip(&claims) {
                prop_assert!(*share <= claim.most());
                prop_assert!(promised > capacity || *share >= claim.guaranteed.min(claim.most()));
            }
            // Nothing is left while somebody wants it, but for rounding.
            let rounding = claims.len() as u64;
            prop_assert!(shares.iter().sum::<u64>() + rounding >= capacity.min(wanted));
        }

        #[test]
        fn without_guarantees_everybody_gets_a_quarter_of_their_weight(
            capacity in 0..100_000_u64,
            claims in claims(),
        ) {
            let free: Vec<EntitlementClaim> =
                claims.iter().map(|it| EntitlementClaim { guaranteed: 0, limit: u64::MAX, ..*it }).collect();
            let weights: u64 = free.iter().map(|it| it.weight).sum();
            for (share, claim) in entitlements(capacity, &free).iter().zip(&free) {
                let quarter = (u128::from(capacity) * u128::from(claim.weight) / u128::from(4 * weights)) as u64;
                prop_assert!(share + 1 >= claim.wants.min(quarter), "{share} {claim:?}");
            }
        }

        #[test]
        fn more_demand_of_one_raises_nobody_elses(
            capacity in 0..100_000_u64,
            claims in claims(),
            more in 1..50_000_u64,
        ) {
            let before = entitlements(capacity, &claims);
            let mut grown = claims.clone();
            grown[0].wants += more;
            let after = entitlements(capacity, &grown);
            let rounding = claims.len() as u64;
            for index in 1..claims.len() {
                prop_assert!(after[index] <= before[index] + rounding, "{before:?} {after:?}");
            }
        }
    }
}
