import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { startLab } from '../lab/lab.ts';
import type { Lab } from '../lab/lab-options.ts';
import type { Services } from '../src/cli/output/services.ts';
import { runCli } from '../src/cli/run.ts';
import { kubeCluster } from '../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../src/kube/cluster.ts';
import { createServices } from '../src/wiring.ts';
import { joinArguments } from '../test/support/join-arguments.ts';

/** The embedded lab with two nodes, for a bench. */
export interface BenchLab {
  readonly lab: Lab;
  readonly services: Services;
  readonly cluster: Cluster;
  close(): Promise<void>;
}

/**
 * Discards the output of the commands, except the errors of a failed one.
 * @param joining additional arguments of `join`
 * @throws Error when one of the commands fails
 */
export async function startBenchLab(...joining: readonly string[]): Promise<BenchLab> {
  const directory = mkdtempSync(join(tmpdir(), 'ka-bench-'));
  const lab = await startLab({ directory, hosts: 2 });
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  let errors = '';
  const stderr = new Writable({
    write: (chunk, _encoding, done) => {
      errors += chunk;
      done();
    },
  });
  const services = createServices({
    env: process.env,
    stdin: process.stdin,
    stdout: nowhere,
    stderr,
    signal: new AbortController().signal,
  });
  const cli = async (...argv: string[]): Promise<void> => {
    if ((await runCli(argv, services, '0')) !== 0) throw new Error(`${argv[0]} failed:\n${errors}`);
  };
  await cli('cluster', 'adopt', '--kubeconfig', lab.kubeconfig);
  await cli(...joinArguments(lab, 'node1'));
  await cli(...joinArguments(lab, 'node2'), ...joining);
  const cluster = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig }, env: {} });
  return {
    lab,
    services,
    cluster,
    close: async () => {
      await cluster.close();
      await lab.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
