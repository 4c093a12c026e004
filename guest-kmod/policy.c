// SPDX-License-Identifier: GPL-2.0
/*
 * The rules that keep hints cheap and the gate steady. Pure: see policy.h.
 */
#include "policy.h"

#define TRIES_BITS	8
#define TRIES_MASK	((1ULL << TRIES_BITS) - 1)
#define TIME_MASK	(~0ULL >> TRIES_BITS)

/**
 * tandem_verdict_name() - the verdict as a word
 * @verdict: what tandem_policy_event() returned
 *
 * Return: a constant string; "unknown" for a value that is no verdict.
 */
const char *tandem_verdict_name(enum tandem_verdict verdict)
{
	switch (verdict) {
	case TANDEM_SEND:
		return "send";
	case TANDEM_SUPPRESSED_SUSTAIN:
		return "suppressed_sustain";
	case TANDEM_SUPPRESSED_TRIES:
		return "suppressed_tries";
	case TANDEM_SUPPRESSED_BUDGET:
		return "suppressed_budget";
	}
	return "unknown";
}

/*
 * Modular arithmetic makes a wrapped clock right, and a clock that went back
 * look like a very long gap: a new contention then begins.
 */
static bool sustained(const struct tandem_policy *policy,
		      struct tandem_waiter *waiter, u64 now)
{
	bool follows = waiter->run && now - waiter->last_ns <= policy->window_ns;

	waiter->last_ns = now;
	if (!follows)
		waiter->run = 1;
	else if (waiter->run < policy->sustain)
		waiter->run++;
	return waiter->run >= policy->sustain;
}

static bool budget_left(const struct tandem_policy *policy,
			struct tandem_waiter *waiter, u64 now)
{
	if (now - waiter->second_ns >= TANDEM_NSEC_PER_SEC) {
		waiter->second_ns = now;
		waiter->used = 0;
	}
	return waiter->used < policy->budget;
}

/*
 * Has the window that began at @first (56 bits) passed? The vCPUs' clocks
 * differ a little, so a @now just before @first is within the window; but no
 * clock step may make us stand back for longer than a window.
 */
static bool window_passed(u64 first, u64 now, u64 window_ns)
{
	u64 age = (now - first) & TIME_MASK;
	u64 ahead = (first - now) & TIME_MASK;

	return age >= window_ns && ahead > window_ns;
}

/* A lost race means that another waiter just hinted at this very vCPU. */
static bool claim_try(const struct tandem_policy *policy,
		      struct tandem_target *target, u64 now)
{
	u64 old = tandem_load64(&target->word);
	u64 tries = old & TRIES_MASK;
	u64 new;

	new = old + 1;
	if (!tries || window_passed(old >> TRIES_BITS, now, policy->window_ns))
		new = now << TRIES_BITS | 1;
	else if (tries >= policy->tries || tries == TRIES_MASK)
		return false;
	return tandem_cas64(&target->word, old, new);
}

/**
 * tandem_policy_event() - a task is about to wait for a preempted holder
 * @policy: the tunables
 * @waiter: the waiting vCPU's memory; caller excludes re-entry
 * @target: the holder's vCPU's memory, shared
 * @now: the waiting vCPU's clock, in ns
 *
 * The budget is looked at before, and spent after, a try is claimed: a vCPU
 * without budget must not use up the tries of the others.
 *
 * Context: any, including NMI. Never waits.
 * Return: what to do, and if nothing, why.
 */
enum tandem_verdict tandem_policy_event(const struct tandem_policy *policy,
					struct tandem_waiter *waiter,
					struct tandem_target *target, u64 now)
{
	if (!sustained(policy, waiter, now))
		return TANDEM_SUPPRESSED_SUSTAIN;
	if (!budget_left(policy, waiter, now))
		return TANDEM_SUPPRESSED_BUDGET;
	if (!claim_try(policy, target, now))
		return TANDEM_SUPPRESSED_TRIES;
	waiter->used++;
	return TANDEM_SEND;
}

/**
 * tandem_policy_running() - a holder's vCPU was seen running: forget its tries
 * @target: that vCPU's memory, shared
 *
 * Reads first: the usual case must not pull the cache line to this vCPU.
 * A claim that races with the store costs or grants one try, no more.
 *
 * Context: any, including NMI.
 */
void tandem_policy_running(struct tandem_target *target)
{
	if (tandem_load64(&target->word))
		tandem_store64(&target->word, 0);
}

/**
 * tandem_steal_permille() - steal as a share of the vCPUs' time
 * @steal_ns: stolen from all vCPUs together
 * @elapsed_ns: wall time
 * @vcpus: online vCPUs
 *
 * Return: permille, rounded down, at most 1000; 0 for no time or no vCPUs.
 */
u32 tandem_steal_permille(u64 steal_ns, u64 elapsed_ns, u32 vcpus)
{
	u64 permille;

	/* In us, so that no product overflows: 2^32 vCPUs, 70 minutes. */
	steal_ns /= TANDEM_NSEC_PER_USEC;
	elapsed_ns /= TANDEM_NSEC_PER_USEC;
	if (!elapsed_ns || !vcpus)
		return 0;
	if (elapsed_ns > ~0ULL / vcpus || steal_ns > ~0ULL / 1000)
		return 0;
	permille = steal_ns * 1000 / (elapsed_ns * vcpus);
	return permille > 1000 ? 1000 : (u32)permille;
}

static void gate_decide(struct tandem_gate *gate,
			const struct tandem_gate_policy *policy, u64 now)
{
	if (gate->permille >= policy->open_permille) {
		gate->open = true;
		gate->below = false;
		return;
	}
	if (!gate->open)
		return;
	if (!gate->below) {
		gate->below = true;
		gate->below_ns = now;
	}
	if (now - gate->below_ns >= policy->hold_ns)
		gate->open = false;
}

/**
 * tandem_gate_sample() - feed one sample of the total steal to the gate
 * @gate: its state
 * @policy: the tunables
 * @steal_ns: steal of all vCPUs since boot; going back counts as none
 * @now: a monotonic clock, in ns
 * @vcpus: online vCPUs
 *
 * The first sample, and one in a period of no length, decide nothing.
 *
 * Return: true if the gate opened or closed.
 */
bool tandem_gate_sample(struct tandem_gate *gate,
			const struct tandem_gate_policy *policy,
			u64 steal_ns, u64 now, u32 vcpus)
{
	bool was_open = gate->open;
	u64 stolen = steal_ns > gate->steal_ns ? steal_ns - gate->steal_ns : 0;
	u64 elapsed = now - gate->sample_ns;
	bool first = !gate->sampled;

	if (!first && !elapsed)
		return false;
	gate->sampled = true;
	gate->steal_ns = steal_ns;
	gate->sample_ns = now;
	if (first)
		return false;
	gate->permille = tandem_steal_permille(stolen, elapsed, vcpus);
	gate_decide(gate, policy, now);
	return gate->open != was_open;
}
