import type { RunSettings } from '../host/run-settings.ts';
import { withoutWrites } from '../kube/without-writes.ts';
import type { CommandServices } from './command.ts';

/** The ports of a command with `--dry-run`: it cannot change a host, a cluster, or the members of etcd. */
export function readOnly(services: CommandServices): CommandServices {
  const { connectHost, connectCluster, connectEtcd } = services;
  return {
    ...services,
    connectHost: async (target, reporter) => ({ ...(await connectHost(target, reporter)), perform: refuse }),
    connectCluster: async (target) => withoutWrites(await connectCluster(target)),
    connectEtcd: async (target) => ({ ...(await connectEtcd(target)), addLearner: refuse, promote: refuse, remove: refuse }),
  };
}

async function refuse(): Promise<never> {
  throw new Error('a dry run changes nothing');
}

/** After the name of a change that a dry run has only planned. */
export function dryRunMark({ dryRun }: RunSettings): string {
  return dryRun ? ' (dry run)' : '';
}
