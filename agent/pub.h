/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Publishing by RCU (liburcu, memb flavour).
 *
 * Why RCU: the event loop that takes samples or reports is the only writer, and
 * it must never wait for a reader: a lock would let whoever may open the control
 * socket (a slow client, a client that is stopped in a debugger) hold up the
 * sampling of the guest, or on the host the reports of every guest. A reader
 * never waits for the writer either, and what it reads is always one whole
 * sample. Readers are rare and short: a request copies the sample into its own
 * buffer inside the read section and does its I/O outside of it.
 *
 * Why no call_rcu(): its helper thread wakes up on its own and costs memory in
 * every guest. The writer keeps what it retired on a list and frees the list
 * after one synchronize_rcu(), which is one membarrier(2) when no reader is
 * active, and otherwise bounded by one reader's copying.
 */
#ifndef TANDEM_PUB_H
#define TANDEM_PUB_H

#include <stddef.h>

#include <urcu.h>

/* The writer waits for the readers at the latest when so much was retired. */
#define PUB_RETIRED_MAX 256

/**
 * struct pub_item - first member of everything that is published
 * @next: on the list of retired items
 */
struct pub_item {
	struct pub_item *next;
};

/**
 * struct pub_retired - items that readers may still see
 * @head: list of them
 * @count: how many
 *
 * Belongs to the writer's thread alone. Zeroed memory is an empty list.
 */
struct pub_retired {
	struct pub_item *head;
	size_t count;
};

void pub_retire(struct pub_retired *pr, struct pub_item *item);
void pub_reclaim(struct pub_retired *pr);

/* Replace what @slot points to; the old one is freed when no reader sees it any more. */
#define pub_replace(pr, slot, new_item) \
	pub_retire((pr), (struct pub_item *)rcu_xchg_pointer((slot), (new_item)))

#endif
