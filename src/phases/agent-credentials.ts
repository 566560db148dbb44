import { type AgentAccount, agentAccountName } from '../core/dynamic/agent/account.ts';
import { accountOf, isStale, readTokenClaims, TOKEN_SECONDS, type TokenClaims } from '../core/dynamic/agent/token-claims.ts';
import { combineFacts } from '../core/facts/fact.ts';
import { fileFacts } from '../core/facts/file-facts.ts';
import type { FileFact } from '../core/facts/question.ts';
import type { PhasePlan, Warning } from '../core/plan/change.ts';
import { diffDirectory, diffFile, type WantedFile } from '../core/plan/diff-file.ts';
import { SensitiveText } from '../core/text/secret.ts';
import { observe } from '../engine/observe.ts';
import { definePhase, type PhaseContext } from '../engine/phase.ts';
import type { Cluster, IssuedToken } from '../ports/cluster.ts';

export interface AgentCredentialsInput {
  readonly account: AgentAccount;
  /** For root alone. */
  readonly directory: string;
  readonly tokenFile: string;
  readonly kubeconfig: WantedFile;
  /** The token that was asked for in this run: nobody can tell it before. */
  readonly issued: { token: IssuedToken | null };
}

interface Facts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  /** Why the token that is there will not do; null: it does. */
  readonly why: string | null;
  readonly now: number;
}

/** Less than this is not long enough for an agent that is cut off. */
const SHORT_DAYS = 30;

/**
 * Gives the agent what it logs in with: a kubeconfig, and a token of its account in a file of its own, which it renews itself from then on. A token is asked for
 * when the account is there, and only where there is none that is good.
 */
export const agentCredentials = definePhase<AgentCredentialsInput | null, Facts>({
  name: 'agent-credentials',
  short: 'Give the agent a token of its account, which it renews itself',
  ready: async (context, input) => {
    if (input === null || context.cluster === null) return;
    const { why } = await look(context, context.cluster, input);
    if (why === null) return;
    const { namespace, nodeName } = input.account;
    input.issued.token = await context.cluster.requestToken({ namespace, name: agentAccountName(nodeName) }, TOKEN_SECONDS);
  },
  observe: async (context, input) => {
    if (input === null || context.cluster === null) return { files: new Map(), why: null, now: 0 };
    return look(context, context.cluster, input);
  },
  plan: (facts, input) => (input === null ? { changes: [] } : planCredentials(facts, input)),
});

function planCredentials({ files, why, now }: Facts, { directory, tokenFile, kubeconfig, issued }: AgentCredentialsInput): PhasePlan {
  const found = (path: string): FileFact | null => files.get(path) ?? null;
  const asked = issued.token;
  const token =
    why === null || asked === null
      ? null
      : diffFile(found(tokenFile), { path: tokenFile, content: new SensitiveText([asked.token, '\n']), mode: 0o600, owner: 'root:root' });
  const changes = [
    diffDirectory(found(directory), directory, 0o700),
    diffFile(found(kubeconfig.path), kubeconfig),
    token === null ? null : { ...token, because: why ?? token.because },
  ].filter((change) => change !== null);
  const warnings = asked === null ? [] : shortLife(asked, now);
  if (why !== null && asked === null) return { changes, deferred: `a token is asked for once the account is there: ${why}` };
  return changes.length === 0 ? { changes, noop: 'the agent has a token that is good' } : { changes, warnings };
}

function shortLife({ expiresAt }: IssuedToken, now: number): readonly Warning[] {
  const days = (expiresAt.getTime() - now) / 86_400_000;
  if (days >= SHORT_DAYS) return [];
  const message = `the API server gives tokens of ${days < 1 ? `${Math.round(days * 24)} hours` : `${Math.round(days)} days`} at most: an agent that is cut off for two thirds of that needs dynamic enable once more`;
  return [{ code: 'AGENT_TOKEN_SHORT', message }];
}

async function look({ host, signal, clock }: PhaseContext, cluster: Cluster, input: AgentCredentialsInput): Promise<Facts> {
  const { account, directory, tokenFile, kubeconfig } = input;
  const ref = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: account.namespace, name: agentAccountName(account.nodeName) };
  const [{ files }, found] = await Promise.all([
    observe(host, combineFacts({ files: fileFacts([directory, tokenFile, kubeconfig.path]) }), signal),
    cluster.get(ref),
  ]);
  const claims = readTokenClaims(files.get(tokenFile)?.content ?? '');
  const now = clock.now().getTime();
  return { files, why: whyNot(claims, { account, uid: found?.metadata.uid ?? null, now }), now };
}

function whyNot(
  claims: TokenClaims | null,
  { account, uid, now }: { readonly account: AgentAccount; readonly uid: string | null; readonly now: number },
): string | null {
  if (claims === null) return 'there is none';
  const owner = accountOf(claims.subject);
  if (owner?.namespace !== account.namespace || owner.name !== agentAccountName(account.nodeName)) return 'it is of another account';
  if (uid === null || claims.accountUid !== uid) return 'its account was made anew';
  if (claims.expiresAt <= now) return `it expired on ${new Date(claims.expiresAt).toISOString()}`;
  return isStale(claims, now) ? `it expires on ${new Date(claims.expiresAt).toISOString()}` : null;
}
