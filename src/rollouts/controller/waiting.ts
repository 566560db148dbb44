import type { RunTime } from '../../base/clock.ts';

/** A sleep that an event ends. */
export class Waiting {
  #isWoken = false;
  #stop = new AbortController();

  wake(): void {
    this.#isWoken = true;
    this.#stop.abort();
  }

  async sleep(ms: number, { clock, signal }: RunTime): Promise<void> {
    if (!this.#isWoken) await clock.sleep(ms, AbortSignal.any([signal, this.#stop.signal])).catch(() => undefined);
    this.#isWoken = false;
    this.#stop = new AbortController();
  }
}
