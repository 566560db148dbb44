import { AppError } from '../../base/errors.ts';
import type { Secret, SensitiveText } from '../../base/text/secret.ts';
import { definePhase } from '../../host/phase.ts';
import type { ClusterServer } from '../../kube/kubeconfig-render.ts';
import { type JoinsAsControlPlane, joinCommand } from '../token/join-command.ts';

export interface ShowJoinCommandInput {
  /** Tokens that nodes can use for discovery and authentication. */
  readonly tokens: readonly Secret[];
  readonly apiServer: ClusterServer | null;
  readonly withhold: boolean;
  /** How control planes join. Null: they cannot, or it was not requested. */
  readonly controlPlane?: (() => JoinsAsControlPlane) | null;
  /** Receives a command, which must be printed on standard output only. */
  readonly show: (command: SensitiveText, joins: 'worker' | 'control-plane') => void;
}

const NAME = 'show-join-command';

/**
 * Prints the join commands; null: none. Plans no changes. kube-controller-manager may sign cluster-info with a new token
 * seconds later: join waits for the signature.
 * @see kubeadm 1.36 init phase show-join-command
 */
export const showJoinCommand = definePhase<ShowJoinCommandInput | null, null>({
  name: NAME,
  short: 'Print the join commands',
  observe: async () => null,
  plan: () => ({ changes: [] }),
  verify: async (context, input) => {
    if (context.cluster === null || input === null) return;
    const { tokens, apiServer, withhold, controlPlane, show } = input;
    if (apiServer === null) {
      const message = 'the kubeconfig contains no CA: cannot print a join command';
      return context.reporter.report({ level: 'warning', code: 'KUBECONFIG_NO_CA', phase: NAME, message });
    }
    if (tokens.length === 0) {
      const hint = 'Run kubeletadm init phase bootstrap-token, or kubeletadm token create --print-join-command';
      throw new AppError({ code: 'NO_TOKEN', message: 'no bootstrap token is usable for joining nodes', hint });
    }
    for (const token of tokens) {
      const shown = withhold ? null : token;
      if (controlPlane) show(joinCommand(apiServer, shown, controlPlane()), 'control-plane');
      show(joinCommand(apiServer, shown), 'worker');
    }
  },
});
