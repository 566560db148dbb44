/**
 * Runs a command line and kills its own process (SIGKILL) after the n-th change of a host or the cluster:
 * `crash-cli.ts N ARGV...`.
 */

import type { Services } from '../../src/cli/output/services.ts';
import { runCli } from '../../src/cli/run.ts';
import type { Host } from '../../src/host/access/host.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { createServices } from '../../src/wiring.ts';

const [limit = '0', ...argv] = process.argv.slice(2);
let changes = 0;

function changed(): void {
  if (++changes === Number(limit)) process.kill(process.pid, 'SIGKILL');
}

/** Performs operations one by one, so that the process can be killed between any two. */
function countingHost(host: Host): Host {
  return {
    name: host.name,
    query: (queries, options) => host.query(queries, options),
    perform: async (operations, options = {}) => {
      for (const [index, operation] of operations.entries()) {
        await host.perform([operation], options.signal === undefined ? {} : { signal: options.signal });
        options.onDone?.(index);
        changed();
      }
    },
    close: () => host.close(),
  };
}

function countingCluster(cluster: Cluster): Cluster {
  const after = async <T>(result: Promise<T>): Promise<T> => {
    const value = await result;
    changed();
    return value;
  };
  return {
    server: cluster.server,
    version: () => cluster.version(),
    get: (ref) => cluster.get(ref),
    list: (kind, options) => cluster.list(kind, options),
    watch: (kind, options) => cluster.watch(kind, options),
    create: (object) => after(cluster.create(object)),
    update: (object) => after(cluster.update(object)),
    patch: (ref, type, patch, options) => after(cluster.patch(ref, type, patch, options)),
    delete: (ref) => after(cluster.delete(ref)),
    evict: (pod, options) => after(cluster.evict(pod, options)),
    getRaw: (path) => cluster.getRaw(path),
    close: () => cluster.close(),
  };
}

const { env, stdin, stdout, stderr } = process;
const real = createServices({ env, stdin, stdout, stderr, signal: new AbortController().signal });
const services: Services = {
  ...real,
  connectHost: async (target, reporter) => countingHost(await real.connectHost(target, reporter)),
  connectCluster: async (target) => countingCluster(await real.connectCluster(target)),
};
void runCli(argv, services, '0.0.0-test').then((code) => {
  process.exitCode = code;
});
