import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { runCli } from '../../src/cli/run.ts';
import { createServices } from '../../src/wiring.ts';
import { startFirstNode } from '../support/first-node.ts';
import { runCommand } from '../support/run-cli.ts';

const MEBIBYTE = 1024 * 1024;
/** Maximum delay of other hosts in a run that is caused by one host. */
const MAX_DELAY_MS = 1000;

const fill = (unit: string, bytes: number): string => unit.repeat(Math.floor(bytes / unit.length));

/**
 * The answers of one host: file and content. Files below the size limit are read, larger ones are rejected.
 */
const FILES: readonly (readonly [what: string, path: string, content: string])[] = [
  ['spaces in os-release', 'etc/os-release', `A=${fill(' ', 200_000)}x\n`],
  ['more spaces in os-release', 'etc/os-release', `A=${fill(' ', 4 * MEBIBYTE)}x\n`],
  ['certificates without an end', 'var/lib/kubelet/pki/kubelet-client-current.pem', fill('-----BEGIN CERTIFICATE-----', 200_000)],
  [
    'certificates without content',
    'var/lib/kubelet/pki/kubelet-client-current.pem',
    fill('-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n', 200_000),
  ],
  ['60,000 certificates', 'var/lib/kubelet/pki/kubelet-client-current.pem', fill('-----BEGIN CERTIFICATE-----', 60_000 * 27)],
  ['prefixes of tokens in config.yaml', 'var/lib/kubelet/config.yaml', `# ${fill('-eyJ', 200_000)}\n`],
  ['40,000 lines in config.yaml', 'var/lib/kubelet/config.yaml', fill('a: b\n', 200_000)],
  ['one line of 4 MiB in config.yaml', 'var/lib/kubelet/config.yaml', fill('x', 4 * MEBIBYTE - 200_000)],
  ['blanks in a unit', 'etc/systemd/system/kubelet.service.d/10-kubeadm.conf', fill('\\\n', 200_000)],
  ['flags', 'var/lib/kubelet/kubeadm-flags.env', `KUBELET_KUBEADM_ARGS="${fill('\\', 200_001)}`],
  ['newlines in the settings of the node', 'var/lib/kubelet/kubeadm-node.yaml', fill('\n', 200_000)],
];

/** Commands of the host that print 3 MiB: a unit for `yes`. */
const COMMANDS: readonly (readonly [name: string, unit: string])[] = [
  ['kubelet', 'Kubernetes v1.36.2                                  x'],
  ['kubelet', ''],
  ['crictl', 'cgroup driver:  '],
  ['uname', '   '],
  ['ip', '1: eth0 inet '],
  ['systemctl', 'ActiveState='],
];

describe('a run with a host that answers with huge output', { timeout: 240_000 }, () => {
  let directory: string;
  let lab: Lab;
  let calmMs: number;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-busy-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    const shared = ['--ssh-config', lab.sshConfig, '--token', lab.token.reveal()];
    await startFirstNode(lab);
    const others = ['--host', 'node2', '--host', 'node3'];
    const joined = await runCommand(['join', lab.server.replace('https://', ''), '--ca-cert', lab.caFile, ...shared, ...others]);
    expect(joined.code, joined.stderr).toBe(0);
    await upgrade();
    calmMs = (await upgrade()).othersMs;
  });
  afterAll(async () => {
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Runs on all hosts; returns when the other two finished, and the longest delay of the event loop. */
  async function upgrade(): Promise<{ readonly othersMs: number; readonly stderr: string; readonly longestMs: number }> {
    const start = performance.now();
    let othersMs = Number.POSITIVE_INFINITY;
    let stderr = '';
    const sink = new Writable({
      write: (chunk: Buffer, _, done) => {
        stderr += chunk.toString('utf8');
        if (['node1', 'node2'].every((name) => stderr.includes(`${name} up to date`)))
          othersMs = Math.min(othersMs, performance.now() - start);
        done();
      },
    });
    const services = createServices({
      env: { PATH: process.env.PATH ?? '' },
      stdin: Readable.from(['']),
      stdout: new Writable({ write: (_chunk, _encoding, done) => done() }),
      stderr: sink,
      signal: new AbortController().signal,
    });
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    const hosts = ['node1', 'node2', 'node3'].flatMap((name) => ['--host', name]);
    // A host with an unreadable file is refused, and must not stop the others here.
    await runCli(['upgrade', 'node', ...hosts, '--max-fail', '100%', '--ssh-config', lab.sshConfig], services, '0.0.0-test');
    delay.disable();
    return { othersMs, stderr, longestMs: delay.max / 1e6 };
  }

  const expectOthersServed = ({ othersMs, longestMs, stderr }: Awaited<ReturnType<typeof upgrade>>): void => {
    expect(longestMs, stderr).toBeLessThan(MAX_DELAY_MS);
    expect(othersMs, stderr).toBeLessThan(4 * calmMs + MAX_DELAY_MS);
    expect(stderr).toMatch(/node3/);
    expect(stderr).not.toContain('[INTERNAL]');
  };

  it.each(FILES)('serves the others in time: %s', async (_, path, content) => {
    const file = join(lab.hosts[2]?.rootDir ?? '', path);
    let before: string | null = null;
    try {
      before = readFileSync(file, 'utf8');
    } catch {
      mkdirSync(dirname(file), { recursive: true });
    }
    writeFileSync(file, content);
    try {
      const result = await upgrade();
      expectOthersServed(result);
      if (content.length > 256 * 1024) expect(result.stderr).toMatch(/node3: .*\[HOST_(?:ANSWER|OUTPUT)_TOO_LARGE\]/);
    } finally {
      if (before === null) rmSync(file);
      else writeFileSync(file, before);
    }
  });

  it.each(COMMANDS)('serves the others in time: %s prints 3 MiB of %j', async (name, unit) => {
    const file = join(directory, 'lab/bin', name);
    const before = readFileSync(file, 'utf8');
    writeFileSync(file, before.replace('\n', `\ncase $KUBELETADM_ROOT in */node3) yes '${unit}' | head -c ${3 * MEBIBYTE}; exit;; esac\n`));
    try {
      expectOthersServed(await upgrade());
    } finally {
      writeFileSync(file, before);
    }
  });
});
