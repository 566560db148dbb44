import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readTokenSecret, type StoredToken, TOKEN_SECRETS, TOKEN_SELECTOR, tokenSecretRef } from '../token/token-secret.ts';

interface ListedTokens {
  readonly tokens: readonly StoredToken[];
  /** One message per Secret of the bootstrap token type that contains no valid token. */
  readonly problems: readonly string[];
}

/** The bootstrap tokens of a cluster, in the order of their Secrets. Throws what `Cluster` throws. */
export async function listTokens(cluster: Cluster): Promise<ListedTokens> {
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
 * @param dryRun only checks that the tokens exist
 * @throws AppError TOKEN_NOT_FOUND and the errors of `Cluster`, for all deletions that failed
 */
export async function deleteTokens(
  cluster: Cluster,
  ids: readonly string[],
  { onDeleted, dryRun }: { readonly onDeleted: (id: string) => void; readonly dryRun: boolean },
): Promise<void> {
  const problems: Problem[] = [];
  for (const id of ids) {
    try {
      const found = await (dryRun ? cluster.get(tokenSecretRef(id)) : cluster.delete(tokenSecretRef(id)));
      if (found === null) problems.push(tokenNotFound(id));
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
