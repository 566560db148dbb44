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
  /** Tokens that nodes can use for discovery and authentication. */
  readonly tokens: readonly Secret[];
  readonly apiServer: { readonly server: string; readonly caPem: string } | null;
  /** Do not print the token itself. */
  readonly withhold: boolean;
  /** How control planes join. Null: they cannot, or it was not requested. */
  readonly controlPlane?: (() => JoinsAsControlPlane) | null;
  /** Receives a command, which must be printed on standard output only. */
  readonly show: (command: SensitiveText, joins: 'worker' | 'control-plane') => void;
}

const NAME = 'show-join-command';
/** kube-controller-manager usually signs within two seconds. */
const SIGNER_MS = 30_000;

/**
 * Waits until cluster-info is signed with each token, so that nodes can use it, and returns the join
 * commands. Plans no changes.
 * kubeadm 1.36: init phase show-join-command, which does not wait.
 */
export const showJoinCommand = definePhase<ShowJoinCommandInput, null>({
  name: NAME,
  short: 'Print the join commands',
  observe: async () => null,
  plan: () => ({ changes: [] }),
  verify: async (context, { tokens, apiServer, withhold, controlPlane, show }) => {
    if (context.cluster === null) return;
    if (apiServer === null) return warn(context, 'KUBECONFIG_NO_CA', 'the kubeconfig contains no CA: cannot print a join command');
    if (tokens.length === 0) {
      const hint = 'Run kubeletadm init phase bootstrap-token, or kubeletadm token create --print-join-command';
      throw new AppError({ code: 'NO_TOKEN', message: 'no bootstrap token is usable for joining nodes', hint });
    }
    await waitForSignatures(context, context.cluster, tokens);
    for (const token of tokens) {
      const shown = withhold ? null : token;
      if (controlPlane) show(joinCommand(apiServer, shown, controlPlane()), 'control-plane');
      show(joinCommand(apiServer, shown), 'worker');
    }
  },
});

/** Continues without signatures after a timeout: nodes can still join in other ways. */
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
          `${message(ids)} after ${Math.round(waitedMs / 1000)}s. Check that kube-controller-manager runs with --controllers=*,bootstrapsigner,tokencleaner. Until cluster-info is signed, nodes can join with --ca-cert or --discovery-file`,
        ),
    },
  );
}

/** Ids of the tokens without a valid signature in the current cluster-info. */
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
