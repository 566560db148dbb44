import type { NodeConfig } from '../../dynamic/status/node-config.ts';
import type { AssessedNode } from '../../dynamic/workflows/read-nodes.ts';
import type { Impact } from '../../host/plan/impact.ts';
import type { Labels } from '../../kube/label-selector.ts';
import { type ConfigSource, describeSource, parseSourceArgument } from '../../kubelet/layers/config-source.ts';
import type { Rollout } from '../api/rollout.ts';

/** A selected Node. */
export interface ObservedNode {
  readonly name: string;
  readonly assessed: AssessedNode;
  readonly labels: Labels;
  readonly createdAt: Date;
  /** This rollout has cordoned it. */
  readonly isHeld: boolean;
  /** An effect of an earlier decision is still being executed for it. */
  readonly isBusy: boolean;
  /** Why its change does not proceed, as a clause; null: no reason. */
  readonly issue: string | null;
}

/** The result of validating a configuration for a node. */
export interface NodeCheck {
  /** Null: accepted. */
  readonly refusal: string | null;
  /** Null: unknown, or no change. */
  readonly impact: Impact | null;
  /** The validation must be repeated; until then, its result counts. */
  readonly isStale?: boolean;
}

/** The result of the last attempt of a gate. */
export interface GateAttempt {
  /** `gateKey` of its result in the status. */
  readonly key: string;
  /** Number of attempts, with this one. */
  readonly attempts: number;
  /** Null: its Job runs, or the API server did not answer. */
  readonly isPassed: boolean | null;
  /** A clause. */
  readonly answer: string;
}

/** All inputs of a decision about a rollout. */
export interface Observed {
  readonly rollout: Rollout;
  /** Sorted by name. */
  readonly nodes: readonly ObservedNode[];
  /** Revision and ConfigMap of `spec.payload`. */
  readonly revision: { readonly name: string; readonly source: ConfigSource };
  /** Why nothing may be changed for this object; null: no reason. */
  readonly refusal: { readonly reason: string; readonly message: string } | null;
  /** By `checkKey`. */
  readonly checks: ReadonlyMap<string, NodeCheck>;
  /** Assignments before this revision, by node; null: the local configuration. */
  readonly previous: ReadonlyMap<string, ConfigSource | null>;
  /** Monotonic: a change of the system time does not end or extend a wait. */
  readonly now: Date;
  /** The system time, for maintenance windows. */
  readonly localTime: Date;
  readonly attempt: GateAttempt | null;
}

/** The check of a configuration for a node and the version of its kubelet. */
export function checkKey({ name, kubeletVersion, backend }: NodeConfig, source: ConfigSource): string {
  return `${name} ${kubeletVersion} ${backend} ${sourceText(source)}`;
}

const LOCAL = 'local';

/** `NAMESPACE/NAME/KEY`, or `local`. */
export function sourceText(source: ConfigSource | null): string {
  return source === null ? LOCAL : describeSource(source);
}

/** The reverse of `sourceText`. */
export function sourceOfText(text: string): ConfigSource | null {
  return text === LOCAL ? null : parseSourceArgument(text).source;
}
