// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "pub.h"

/**
 * pub_retire() - free an item once no reader can see it
 * @pr: the writer's list
 * @item: from malloc(), no longer reachable for new readers; may be NULL
 *
 * Context: the writer's thread, outside of read sections. Rarely waits.
 */
void pub_retire(struct pub_retired *pr, struct pub_item *item)
{
	if (!item)
		return;
	item->next = pr->head;
	pr->head = item;
	if (++pr->count >= PUB_RETIRED_MAX)
		pub_reclaim(pr);
}

/**
 * pub_reclaim() - wait for the readers, then free what was retired
 * @pr: the writer's list
 *
 * Context: the writer's thread, outside of read sections. Does nothing when the
 * list is empty. Call it from a timer, so that nothing is kept for long.
 */
void pub_reclaim(struct pub_retired *pr)
{
	struct pub_item *item = pr->head;

	if (!item)
		return;
	synchronize_rcu();
	pr->head = NULL;
	pr->count = 0;
	while (item) {
		struct pub_item *next = item->next;

		free(item);
		item = next;
	}
}
