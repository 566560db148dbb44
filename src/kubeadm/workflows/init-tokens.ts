import { jsonEqual } from '../../base/json.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { applyTokenDefaults, type DefaultedBootstrapToken } from '../config/defaults.ts';
import type { BootstrapToken } from '../config/model.ts';
import type { DesiredToken } from '../phases/bootstrap-token.ts';
import { remainingMs, type StoredToken, tokenSecret } from '../token/token-secret.ts';
import { listTokens } from './bootstrap-tokens.ts';

export interface InitTokenOptions {
  /** As written; none: one that nodes can join by is to be there. */
  readonly bootstrapTokens: readonly BootstrapToken[];
  /** As many as `countMissingTokens` says. */
  readonly freshTokens: readonly Secret[];
  /** Null: no node could use a token. */
  readonly apiServer: object | null;
  /** The phase bootstrap-token will run. */
  readonly makesTokens: boolean;
}

export interface InitTokens {
  /** Those that are to be made or brought to what was declared. */
  readonly desired: readonly DesiredToken[];
  /** Those that nodes can join by, in the order written. */
  readonly joining: readonly Secret[];
}

/** Less is no use for joining by hand. */
const USABLE_MS = 600_000;

/**
 * Settles the tokens of init. A token that was written is made as it is written. Where none was, one that is in the cluster and that nodes can join by is used, and a
 * new one is made only when there is none: a second run makes no second token.
 * @throws what `Cluster` throws
 */
export async function settleTokens(context: PhaseContext, options: InitTokenOptions): Promise<InitTokens> {
  const now = context.clock.now();
  const written = options.bootstrapTokens;
  const complete = applyTokenDefaults(written, options.freshTokens);
  const needsOld = written.length === 0 || written.some(({ token }) => token === undefined);
  const existing =
    needsOld && options.apiServer !== null && context.cluster !== null ? usable((await listTokens(context.cluster)).tokens, now) : [];
  const desired: DesiredToken[] = [];
  const joining: Secret[] = [];
  for (const [i, token] of complete.entries()) {
    const old = written[i]?.token === undefined ? existing.find(written.length === 0 ? canJoin : isLike(token)) : undefined;
    if (old !== undefined) describeUse(context, old);
    else if (written[i]?.token === undefined && !options.makesTokens) continue;
    else desired.push({ secret: tokenSecret(token, now), exactEnd: token.expires !== undefined });
    if (canJoin(token)) joining.push(old?.token ?? token.token);
  }
  return { desired, joining };
}

/** Those that live long enough, the longest-lived first. */
function usable(tokens: readonly StoredToken[], now: Date): readonly StoredToken[] {
  const left = (token: StoredToken): number => remainingMs(token, now) ?? Number.POSITIVE_INFINITY;
  return tokens.filter((token) => left(token) >= USABLE_MS).toSorted((a, b) => (left(a) === left(b) ? 0 : left(b) - left(a)));
}

/** Whether nodes can find the cluster by it, and log in to read what they need. */
function canJoin({ usages, groups }: Pick<StoredToken, 'usages' | 'groups'>): boolean {
  return ['signing', 'authentication'].every((usage) => usages.includes(usage)) && groups.includes(DEFAULT_GROUP);
}

const DEFAULT_GROUP = 'system:bootstrappers:kubeadm:default-node-token';

/** The token that an earlier run made for the same entry of the configuration. */
function isLike(token: DefaultedBootstrapToken): (stored: StoredToken) => boolean {
  const usages = token.usages.toSorted();
  return (stored) =>
    jsonEqual(stored.usages, usages) && jsonEqual(stored.groups, token.groups) && stored.description === (token.description ?? '');
}

function describeUse({ reporter }: PhaseContext, { id, expires }: StoredToken): void {
  const end = expires === null ? 'never expires' : `is good until ${expires}`;
  reporter.report({ level: 'info', code: 'TOKEN_USED', phase: 'bootstrap-token', message: `uses token ${id}, which is there and ${end}` });
}
