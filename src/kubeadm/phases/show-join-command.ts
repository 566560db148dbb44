import { AppError } from '../../base/errors.ts';
import type { Secret, SensitiveText } from '../../base/text/secret.ts';
import { API_PAUSE, waitUntil } from '../../base/wait-until.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { partsOfToken } from '../../kube/bootstrap-token.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { CLUSTER_INFO, CLUSTER_INFO_KUBECONFIG, dataOf, SIGNATURE_PREFIX } from '../cluster-info.ts';
import { type JoinsAsControlPlane, joinCommand } from '../token/join-command.ts';
import { isSignedBy } from '../token/jws.ts';

export interface ShowJoinCommandInput {
  /** Those that nodes can find the cluster and log in by. */
  readonly tokens: readonly Secret[];
  readonly apiServer: { readonly server: string; readonly caPem: string } | null;
  /** The token itself is not to be shown. */
  readonly withhold: boolean;
  /** Control planes can join as well: how. Null: they cannot, or nobody asks. */
  readonly controlPlane?: (() => JoinsAsControlPlane) | null;
  /** Takes a command: it belongs on standard output, and nowhere else. */
  readonly show: (command: SensitiveText, joins: 'worker' | 'control-plane') => void;
}

const NAME = 'show-join-command';
/** kube-controller-manager signs within a second or two. */
const SIGNER_MS = 30_000;

/**
 * Waits until nodes can find the cluster by the tokens, that is until cluster-info is signed with each, and gives the commands that join by them. Plans nothing.
 * kubeadm 1.36: init phase show-join-command, which does not wait.
 */
export const showJoinCommand = definePhase<ShowJoinCommandInput, null>({
  name: NAME,
  short: 'Print the join commands',
  observe: async () => null,
  plan: () => ({ changes: [] }),
  verify: async (context, { tokens, apiServer, withhold, controlPlane, show }) => {
    if (context.cluster === null) return;
    if (apiServer === null)
      return warn(context, 'KUBECONFIG_NO_CA', 'the kubeconfig has no certificate authority: no join command can be made');
    if (tokens.length === 0) {
      const hint = 'Run init phase bootstrap-token, or token create --print-join-command';
      throw new AppError({ code: 'NO_TOKEN', message: 'there is no bootstrap token that nodes could join by', hint });
    }
    await waitForSignatures(context, context.cluster, tokens);
    for (const token of tokens) {
      const shown = withhold ? null : token;
      if (controlPlane) show(joinCommand(apiServer, shown, controlPlane()), 'control-plane');
      show(joinCommand(apiServer, shown), 'worker');
    }
  },
});

/** Goes on after a while without them: in a cluster that does not sign, nodes can still join in other ways. */
async function waitForSignatures(context: PhaseContext, cluster: Cluster, tokens: readonly Secret[]): Promise<void> {
  const { clock, reporter, signal } = context;
  const message = (ids: readonly string[]) => `ConfigMap kube-public/cluster-info has no signature for token ${ids.join(', ')}`;
  await waitUntil(
    { clock, reporter, signal, phase: NAME },
    {
      probe: async () => {
        const unsigned = await unsignedTokens(cluster, tokens);
        return unsigned.length === 0 ? { done: undefined } : { pending: unsigned };
      },
      timeoutMs: SIGNER_MS,
      pauseMs: API_PAUSE,
      progressMs: 5_000,
      describe: (ids, waitedMs) => `waiting for the signature of cluster-info, ${Math.round(waitedMs / 1000)} s: ${message(ids)}`,
      timedOut: (ids, waitedMs) =>
        warn(
          context,
          'CLUSTER_INFO_UNSIGNED',
          `${message(ids)} after ${Math.round(waitedMs / 1000)}s. Does kube-controller-manager run with --controllers=*,bootstrapsigner,tokencleaner? Until it signs, nodes can join with --ca-cert or --discovery-file`,
        ),
    },
  );
}

/** Ids of the tokens that cluster-info, as it is now, is not signed with. */
async function unsignedTokens(cluster: Cluster, tokens: readonly Secret[]): Promise<readonly string[]> {
  const found = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', ...CLUSTER_INFO });
  const data = found === null ? {} : dataOf(found);
  return tokens.flatMap((token) => {
    const { id, secret } = partsOfToken(token) ?? {};
    if (id === undefined || secret === undefined) return [];
    const signature = data[`${SIGNATURE_PREFIX}${id}`];
    return signature !== undefined && isSignedBy(signature, id, secret, data[CLUSTER_INFO_KUBECONFIG] ?? '') ? [] : [id];
  });
}

function warn({ reporter }: PhaseContext, code: string, message: string): void {
  reporter.report({ level: 'warning', code, phase: NAME, message });
}
