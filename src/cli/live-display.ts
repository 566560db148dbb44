import type { Clock } from '../base/clock.ts';
import { type LiveView, renderLive } from './live-view.ts';
import type { Output } from './output/services.ts';

/** A display that is redrawn until it is closed. */
interface LiveDisplay {
  /** Erases the display. */
  close(): void;
}

/** A command that ends earlier shows no display. */
const FIRST_MS = 1_500;
const EVERY_MS = 500;

/**
 * Shows a live display on a terminal while a command runs, and redraws it twice a second. Without a terminal,
 * nothing is shown.
 * @param view gives the present state
 */
export function liveDisplay(
  { clock, output }: { readonly clock: Clock; readonly output: Pick<Output, 'status'> },
  view: () => LiveView,
): LiveDisplay {
  const { status } = output;
  if (status === undefined) return { close: () => undefined };
  const stop = new AbortController();
  const draw = async (): Promise<void> => {
    await clock.sleep(FIRST_MS, stop.signal);
    for (;;) {
      status((size) => renderLive(view(), size, clock.now().getTime()));
      await clock.sleep(EVERY_MS, stop.signal);
    }
  };
  draw().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    close: () => {
      stop.abort();
      status(null);
    },
  };
}
