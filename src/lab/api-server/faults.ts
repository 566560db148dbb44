import type { RequestInfo } from './request-info.ts';

/** Which requests a fault meets; what is left out matches all. */
export interface FaultMatch {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, or the method of a path that is no resource. */
  readonly verb?: string;
  /** Plural name, e.g. `configmaps`. */
  readonly resource?: string;
  readonly name?: string;
  /** The path, for what is no resource, e.g. `/version`. */
  readonly path?: string;
}

/** What happens to a request instead of, or before, its answer. */
export type FaultAction =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly contentType?: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The connection is cut without an answer. */
  | { readonly kind: 'drop' }
  /** Goes on after a while, with `then` or with its answer. */
  | { readonly kind: 'delay'; readonly ms: number; readonly then?: FaultAction }
  /** Waits until the promise is kept, then goes on with `then` or with its answer. */
  | { readonly kind: 'hold'; readonly until: Promise<void>; readonly then?: FaultAction };

/** Troubles waiting for requests. */
export interface Faults {
  /** Meets the next `times` (default 1) matching requests. A request meets one fault: of several the one added first. */
  add(match: FaultMatch, action: FaultAction, times?: number): void;
  /** Holds the next matching request. `arrived` resolves when it is there, `release` lets it go on. */
  hold(match: FaultMatch, then?: FaultAction): { readonly arrived: Promise<void>; readonly release: () => void };
  /** The fault that meets a request now, used up by it; null for none. */
  take(request: RequestInfo): FaultAction | null;
  clear(): void;
}

/** No faults yet. */
export function createFaults(): Faults {
  let waiting: { match: FaultMatch; action: FaultAction; left: number; met?: () => void }[] = [];
  return {
    add: (match, action, times = 1) => {
      waiting.push({ match, action, left: times });
    },
    hold: (match, then) => {
      const [arrived, met] = signal();
      const [until, release] = signal();
      waiting.push({ match, action: { kind: 'hold', until, ...(then ? { then } : {}) }, left: 1, met });
      return { arrived, release };
    },
    take: (request) => {
      const fault = waiting.find(({ match }) => meets(match, request));
      if (!fault) return null;
      fault.left -= 1;
      waiting = waiting.filter(({ left }) => left > 0);
      fault.met?.();
      return fault.action;
    },
    clear: () => {
      waiting = [];
    },
  };
}

function meets(match: FaultMatch, request: RequestInfo): boolean {
  if (match.verb !== undefined && match.verb !== request.verb) return false;
  if (match.path !== undefined && match.path !== request.path) return false;
  if (match.resource !== undefined && (request.kind !== 'resource' || match.resource !== request.resource)) return false;
  return match.name === undefined || (request.kind === 'resource' && match.name === request.name);
}

function signal(): readonly [Promise<void>, () => void] {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return [promise, resolve];
}
