import { differingFields } from '../core/dynamic/agent/prepare-payload.ts';
import { isAppError, messageOf } from '../core/errors.ts';
import type { JsonObject } from '../core/json.ts';
import type { Catalogue, Minor } from '../core/kubelet/catalogue.ts';
import { readConfigz } from '../core/kubelet/effective/configz.ts';
import type { Clock } from '../ports/clock.ts';

/** The process that was given a payload. */
export interface ProvenProcess {
  readonly pid: number;
  readonly minor: Minor;
  /** What its configz has to show. Asked for once a process. */
  readonly expected: () => Promise<JsonObject>;
}

/** Why configz was not told. */
export interface ConfigzTrouble {
  readonly why: string;
  /** Somebody answered: asking did not fail for a network that is away. */
  readonly isAnswer: boolean;
}

/** Whether a kubelet runs what it was given, by its own word. */
export interface ConfigzProof {
  /** The kubelet is about to be another: what is known is old. */
  forget(): void;
  /** The fields that differ from what is expected; null: that is not known, see `trouble`. */
  differing(process: ProvenProcess): Promise<readonly string[] | null>;
  /** Why it is not known; null: it is, or was not asked for. */
  readonly trouble: ConfigzTrouble | null;
}

export interface ConfigzProofOptions {
  readonly nodeName: string;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  /** What the kubelet answers at `/configz`. */
  readonly ask: () => Promise<JsonObject>;
  readonly onTrouble: (message: string) => void;
}

/** After two tries that failed: it may be for good. */
const AGAIN_MS = 5_000;

/** Asks for configz until it is told, and then not again: the configuration of a process does not change while it lives. */
export function configzProof({ nodeName, catalogue, clock, ask, onTrouble }: ConfigzProofOptions): ConfigzProof {
  let proven: { readonly pid: number; readonly differing: readonly string[] } | null = null;
  let trouble: (ConfigzTrouble & { readonly againAt: number }) | null = null;
  const now = (): number => clock.now().getTime();
  return {
    get trouble() {
      return trouble;
    },
    forget: () => {
      proven = null;
      trouble = null;
    },
    differing: async ({ pid, minor, expected }) => {
      if (proven?.pid === pid) return proven.differing;
      if (trouble !== null && now() < trouble.againAt) return null;
      try {
        const configz = readConfigz(await ask(), nodeName, { minor, catalogue });
        proven = { pid, differing: differingFields(configz, await expected(), { minor, catalogue }) };
        trouble = null;
        return proven.differing;
      } catch (error) {
        onTrouble(messageOf(error));
        const againAt = now() + (trouble === null ? 0 : AGAIN_MS);
        trouble = { why: `configz can't be read: ${messageOf(error)}`, isAnswer: !isAppError(error, 'CLUSTER_UNREACHABLE'), againAt };
        return null;
      }
    },
  };
}
