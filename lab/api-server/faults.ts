import type { RequestInfo } from './request-info.ts';

/** The requests that a fault applies to; absent fields match all. */
export interface FaultMatch {
  /**
   * `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, or the HTTP method for a path without a
   * resource.
   */
  readonly verb?: string;
  /** Plural name, e.g. `configmaps`. */
  readonly resource?: string;
  readonly name?: string;
  /** The path, for requests without a resource, e.g. `/version`. */
  readonly path?: string;
}

/** What happens instead of, or before, the response. */
export type FaultAction =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly contentType?: string;
      readonly body?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Closes the connection without a response. */
  | { readonly kind: 'drop' }
  /** Delays the request, then continues with `then` or the response. */
  | { readonly kind: 'delay'; readonly ms: number; readonly then?: FaultAction }
  /** Waits for the promise, then continues with `then` or the response. */
  | { readonly kind: 'hold'; readonly until: Promise<void>; readonly then?: FaultAction };

/** Pending faults. */
export interface Faults {
  /**
   * Applies to the next `times` (default 1) matching requests. Each request gets at most one fault, the one
   * added first.
   */
  add(match: FaultMatch, action: FaultAction, times?: number): void;
  /**
   * Holds the next matching request. `arrived` resolves when the request arrives, `release` lets it continue.
   */
  hold(match: FaultMatch, then?: FaultAction): { readonly arrived: Promise<void>; readonly release: () => void };
  /** Takes the fault for a request; null for none. */
  take(request: RequestInfo): FaultAction | null;
  clear(): void;
}

/** Creates an empty list of faults. */
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
