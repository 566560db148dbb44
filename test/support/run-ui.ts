import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { runCli } from '../../src/cli/run.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { createServices } from '../../src/wiring.ts';
import { TextSink } from './run-cli.ts';
import { TOKEN_KUBECONFIG } from './token-kubeconfig.ts';

/** `kubeletadm ui` for a cluster, served on a port of this host. */
export interface RunningUi {
  /** The page, with the token. */
  readonly url: string;
  stderr(): string;
  /** As Ctrl-C. @returns the exit code */
  stop(): Promise<number>;
}

/** @param argv more arguments */
export async function startUi(cluster: Cluster, argv: readonly string[] = []): Promise<RunningUi> {
  const directory = mkdtempSync(join(tmpdir(), 'run-ui-'));
  writeFileSync(join(directory, 'admin.conf'), TOKEN_KUBECONFIG);
  const [stdout, stderr, stop] = [new TextSink(), new TextSink(), new AbortController()];
  const services = createServices({
    env: { PATH: process.env.PATH ?? '', HOME: directory, KUBECONFIG: join(directory, 'admin.conf') },
    stdin: Readable.from(['']),
    stdout,
    stderr,
    signal: stop.signal,
  });
  const ended = runCli(['ui', ...argv], { ...services, connectCluster: async () => ({ ...cluster, close: async () => {} }) }, '0.0.0-test');
  const urlOf = (): string => /live page: (\S+)/.exec(stderr.text)?.[1] ?? '';
  await Promise.race([ended, expect.poll(urlOf, { timeout: 30_000 }).not.toBe('')]);
  return {
    url: urlOf(),
    stderr: () => stderr.text,
    stop: async () => {
      stop.abort();
      const code = await ended;
      rmSync(directory, { recursive: true, force: true });
      return code;
    },
  };
}
