import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { jsonEqual } from '../../base/json.ts';
import type { Secret } from '../../base/text/secret.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { applyTokenDefaults, DEFAULT_TOKEN_GROUPS, type DefaultedBootstrapToken } from '../config/defaults.ts';
import type { BootstrapToken } from '../config/model.ts';
import type { DesiredToken } from '../phases/bootstrap-token.ts';
import {
  readTokenSecret,
  remainingMs,
  type StoredToken,
  TOKEN_SECRETS,
  TOKEN_SELECTOR,
  tokenSecret,
  tokenSecretRef,
} from '../token/token-secret.ts';

/** The bootstrap tokens of a cluster, in the order of their Secrets. Throws what `Cluster` throws. */
export async function listTokens(cluster: Cluster): Promise<{
  readonly tokens: readonly StoredToken[];
  /** One message per Secret of the bootstrap token type that contains no valid token. */
  readonly problems: readonly string[];
}> {
  const { items } = await cluster.list(TOKEN_SECRETS, { fieldSelector: TOKEN_SELECTOR });
  const read = items.map(readTokenSecret);
  return {
    tokens: read.filter((token) => typeof token !== 'string'),
    problems: read.filter((token) => typeof token === 'string'),
  };
}

/**
 * Checks that the ids of new tokens are unused.
 * @throws AppError TOKEN_EXISTS for each id in use
 */
export async function requireFreeIds(cluster: Cluster, ids: readonly string[]): Promise<void> {
  const problems: Problem[] = [];
  for (const id of ids) if ((await cluster.get(tokenSecretRef(id))) !== null) problems.push(tokenExists(id));
  if (problems.length > 0) throw new AppError(problems);
}

/**
 * Creates the Secrets of tokens.
 * @throws AppError TOKEN_EXISTS when another client created the id in the meantime; the errors of `Cluster`
 */
export async function createTokens(cluster: Cluster, secrets: readonly KubeObject[]): Promise<void> {
  for (const secret of secrets) {
    await cluster.create(secret).catch((error: unknown) => {
      if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) throw error;
      throw new AppError(tokenExists(secret.metadata.name.replace(/^bootstrap-token-/, '')));
    });
  }
}

/**
 * Deletes all tokens, even when some deletions fail.
 * @param onDeleted called for each deleted token
 * @throws AppError TOKEN_NOT_FOUND and the errors of `Cluster`, for all deletions that failed
 */
export async function deleteTokens(
  cluster: Cluster,
  ids: readonly string[],
  onDeleted: (id: string) => void = () => undefined,
): Promise<void> {
  const problems: Problem[] = [];
  for (const id of ids) {
    try {
      if ((await cluster.delete(tokenSecretRef(id))) === null) problems.push(tokenNotFound(id));
      else onDeleted(id);
    } catch (error) {
      if (!isAppError(error)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new AppError(problems);
}

function tokenExists(id: string): Problem {
  const hint = `Delete the existing token with kubeletadm token delete ${id}, or omit the token to generate a new one`;
  return { code: 'TOKEN_EXISTS', message: `a token with id "${id}" already exists`, hint };
}

function tokenNotFound(id: string): Problem {
  const hint = 'List the existing tokens: kubeletadm token list. The cluster deletes expired tokens automatically';
  return {
    code: 'TOKEN_NOT_FOUND',
    message: `failed to delete bootstrap token "${id}": Secret kube-system/bootstrap-token-${id} does not exist`,
    hint,
  };
}

export interface InitTokenOptions {
  /** As declared; empty: one token that nodes can join with is required. */
  readonly bootstrapTokens: readonly BootstrapToken[];
  /** New tokens; their number is given by `countMissingTokens`. */
  readonly freshTokens: readonly Secret[];
  /** Null: no API server is known, so no node could use a token. */
  readonly apiServer: object | null;
  /** The phase bootstrap-token runs. */
  readonly makesTokens: boolean;
}

export interface InitTokens {
  /** Tokens to create or update. */
  readonly desired: readonly DesiredToken[];
  /** Tokens that nodes can join with, in the declared order. */
  readonly joining: readonly Secret[];
}

/** A shorter remaining lifetime is too short for joining manually. */
const USABLE_MS = 600_000;

/**
 * Decides the tokens of init. Declared tokens are created as declared. Without a declared token, an existing token that
 * nodes can join with is reused, so that a second run creates no second token.
 * @throws the errors of `Cluster`
 */
export async function planInitTokens(context: PhaseContext, options: InitTokenOptions): Promise<InitTokens> {
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
    else desired.push({ secret: tokenSecret(token, now), hasAbsoluteExpiry: token.expires !== undefined });
    if (canJoin(token)) joining.push(old?.token ?? token.token);
  }
  return { desired, joining };
}

/** Tokens with enough remaining lifetime, the longest-lived first. */
function usable(tokens: readonly StoredToken[], now: Date): readonly StoredToken[] {
  const left = (token: StoredToken): number => remainingMs(token, now) ?? Number.POSITIVE_INFINITY;
  return tokens.filter((token) => left(token) >= USABLE_MS).toSorted((a, b) => (left(a) === left(b) ? 0 : left(b) - left(a)));
}

/** Whether the token allows discovery and TLS bootstrap. */
function canJoin({ usages, groups }: Pick<StoredToken, 'usages' | 'groups'>): boolean {
  return (
    ['signing', 'authentication'].every((usage) => usages.includes(usage)) && DEFAULT_TOKEN_GROUPS.every((group) => groups.includes(group))
  );
}

/** Matches the token that an earlier run created for the same entry of the configuration. */
function isLike(token: DefaultedBootstrapToken): (stored: StoredToken) => boolean {
  const usages = token.usages.toSorted();
  return (stored) =>
    jsonEqual(stored.usages, usages) && jsonEqual(stored.groups, token.groups) && stored.description === (token.description ?? '');
}

function describeUse({ reporter }: PhaseContext, { id, expires }: StoredToken): void {
  const end = expires === null ? 'which never expires' : `which expires at ${expires}`;
  reporter.report({
    level: 'info',
    code: 'TOKEN_USED',
    phase: 'bootstrap-token',
    message: `using the existing bootstrap token ${id}, ${end}`,
  });
}
