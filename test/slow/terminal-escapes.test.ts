import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCertificateRequest } from '../../lab/api-server/pki.ts';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { formatSourceAnnotation } from '../../src/kubelet/layers/config-source.ts';
import { startFirstNode } from '../support/first-node.ts';
import { HOSTILE, UNSAFE } from '../support/hostile-text.ts';
import { type CliOptions, type CliResult, runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const CONFIG = 'var/lib/kubelet/config.yaml';
const NODE2 = { apiVersion: 'v1', kind: 'Node', name: 'node2' } as const;

describe('terminal escapes of hosts, Nodes and API servers', { timeout: 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let admin: Cluster;
  let fleetFile: string;
  const path = (name: string): string => join(lab.hosts[1]?.rootDir ?? '', name);
  /** Writes a text into a file of node2 during a run. */
  const planted = async <T>(name: string, text: string, use: () => Promise<T>): Promise<T> => {
    const before = readFileSync(path(name), 'utf8');
    writeFileSync(
      path(name),
      text.replace('BEFORE', () => before),
    );
    try {
      return await use();
    } finally {
      writeFileSync(path(name), before);
    }
  };
  const run = (argv: readonly string[], options?: CliOptions): Promise<CliResult> =>
    runCommand([...argv, '--ssh-config', lab.sshConfig], { env: { XDG_STATE_HOME: join(directory, 'state') }, ...options });
  /** All planted text is printed, and no control character of it reaches the terminal. */
  const expectShown = ({ stdout, stderr }: CliResult): void => {
    const printed = stdout + stderr;
    expect(printed).toMatch(/pwned/i);
    expect(JSON.stringify(UNSAFE.exec(printed)?.[0] ?? null), printed).toBe('null');
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-escapes-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 2 });
    admin = kubeCluster({ kubeconfig: { text: readFileSync(lab.kubeconfig, 'utf8'), file: lab.kubeconfig } });
    const shared = ['--ssh-config', lab.sshConfig, '--token', lab.token.reveal()];
    await startFirstNode(lab);
    const join2 = ['join', lab.server.replace('https://', ''), '--ca-cert', lab.caFile, ...shared, '--host', 'node2'];
    expect((await runCommand(join2)).code).toBe(0);
    fleetFile = join(directory, 'fleet.yaml');
    const cluster = `cluster: {kubeconfig: ${lab.kubeconfig}}`;
    writeFileSync(fleetFile, `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\n${cluster}\nhosts: [{name: node2}]\n`);
    await untilTrue(async () => (await admin.get(NODE2)) !== null);
    const { requestPem } = await createCertificateRequest({ commonName: 'system:node:node2', organizations: ['system:nodes'] }, [
      `a${HOSTILE.replace(/[^\x20-\x7e\x1b\x07]/gu, '')}b`,
      'c\ncsr-forged  1s',
    ]);
    const spec = { request: Buffer.from(requestPem).toString('base64'), usages: ['digital signature', 'server auth'] };
    await admin.create({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'csr-evil' },
      spec: { ...spec, signerName: 'kubernetes.io/kubelet-serving' },
    });
  });
  afterAll(async () => {
    await admin?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  describe.each([[0], [2], [5]])('at -v %i', (verbosity) => {
    const more = ['-v', String(verbosity)];

    it.each([
      ['upgrade node', ['upgrade', 'node', '--host', 'node2', '--dry-run', '--diff']],
      ['fleet plan', ['fleet', 'plan', '-f', 'FLEET', '--diff']],
      ['fleet drift', ['fleet', 'drift', '-f', 'FLEET', '--diff']],
    ])('of a comment in config.yaml: %s', async (_, argv) => {
      const command = [...argv.map((word) => (word === 'FLEET' ? fleetFile : word)), ...more];
      expectShown(await planted(CONFIG, `# ${HOSTILE}\nBEFORE`, () => run(command)));
    });

    it.each([
      ['reset', ['reset', '--host', 'node2', '--dry-run', '--force', '--delete-node']],
      ['dynamic enable', ['dynamic', 'enable', 'node2', '--dry-run', '--program', 'PROGRAM']],
    ])('of the machine-id of a host: %s', async (_, argv) => {
      const program = join(directory, 'kubeletadm.mjs');
      writeFileSync(program, '#!/usr/bin/env node\n');
      const command = [...argv.map((word) => (word === 'PROGRAM' ? program : word)), '--kubeconfig', lab.kubeconfig, ...more];
      const named = [...command, '--node-name', 'node2'];
      const withoutProof = () => planted('var/lib/kubelet/pki/kubelet-client-current.pem', '', () => run(named));
      expectShown(await planted('etc/machine-id', `x${HOSTILE}\n`, withoutProof));
    });

    it('of names of files and network interfaces: reset', async () => {
      mkdirSync(path('etc/cni/net.d'), { recursive: true });
      writeFileSync(path(`etc/cni/net.d/${HOSTILE}.conf`), '');
      try {
        expectShown(await run(['reset', '--host', 'node2', '--dry-run', '--diff', '--force', ...more]));
      } finally {
        rmSync(path('etc/cni'), { recursive: true });
      }
    });

    it('of the names in a CSR, which are one row of the table: csr list', async () => {
      const result = await runCommand(['csr', 'list', '--kubeconfig', lab.kubeconfig, ...more]);
      expectShown(result);
      expect(result.stdout.split('\n').filter((line) => line.startsWith('csr-forged'))).toEqual([]);
      const refused = await runCommand(['csr', 'approve', 'csr-evil', '--kubeconfig', lab.kubeconfig, ...more]);
      expectShown(refused);
      expect(refused.code).toBe(1);
    });

    it('of annotations and conditions of a Node: dynamic status', async () => {
      const annotations = {
        'kubeletadm.dev/config-source': formatSourceAnnotation({ namespace: 'kube-system', name: 'c', kubeletConfigKey: 'kubelet' }),
        'kubeletadm.dev/config-status': JSON.stringify({ error: `E\nnode3  agent  good ${HOSTILE}` }),
      };
      await admin.patch(NODE2, 'merge', { metadata: { annotations } });
      expectShown(await runCommand(['dynamic', 'status', '--kubeconfig', lab.kubeconfig, ...more]));
    });

    it.each([
      ['succeeds', 0],
      ['fails', 3],
    ])('of a command that %s: fleet exec', async (_, exitCode) => {
      const octal = octalOf(HOSTILE);
      const program = `printf '${octal}\\n'; printf '${octal}' >&2; exit ${exitCode}`;
      const result = await runCommand(['fleet', 'exec', '-f', fleetFile, '--ssh-config', lab.sshConfig, ...more, '--', program]);
      expectShown(result);
      expect(result.code).toBe(exitCode === 0 ? 0 : 1);
    });

    it('of the state of a unit: fleet status', async () => {
      const bin = join(directory, 'lab/bin/systemctl');
      const before = readFileSync(bin, 'utf8');
      const show = `printf 'LoadState=loaded\\nActiveState=x${octalOf(HOSTILE)}\\nSubState=dead\\n'`;
      writeFileSync(bin, before.replace('\n', `\ncase $1 in show) ${show}; exit;; esac\n`));
      try {
        expectShown(await run(['fleet', 'status', '-f', fleetFile, ...more]));
      } finally {
        writeFileSync(bin, before);
      }
    });

    it("of the kubelet's journal: a change that crashes the kubelet", async () => {
      const bin = join(directory, 'lab/bin/journalctl');
      const before = readFileSync(bin, 'utf8');
      // A line separator ends the match of a pattern in a line.
      const octal = octalOf(HOSTILE.replace(/[\u2028\u2029]/g, ''));
      const lines = [
        `pod_workers.go:1] "Error syncing pod" container="a${octal}" err="${octal}"`,
        `run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: --x${octal}"`,
      ].map((line) => `E1122 10:00:00.000000       1 ${line}`.replaceAll('\\', '\\0'));
      writeFileSync(bin, `#!/bin/sh\nprintf '%b\\n' '${lines.join("' '")}'\n`);
      try {
        const set = ['--set', 'authentication.x509.clientCAFile=/no/such', '--allow-pod-loss', '--allow', 'unsafe'];
        const result = await run(['upgrade', 'node', '--host', 'node2', ...set, ...more]);
        expectShown(result);
        expect(result.code).not.toBe(0);
      } finally {
        writeFileSync(bin, before);
      }
    });

    it('of the error message of an API server: token list', async () => {
      const server = await answering(403, {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        reason: 'Forbidden',
        message: `no ${HOSTILE}`,
      });
      try {
        const kubeconfig = join(directory, 'other.conf');
        writeFileSync(kubeconfig, kubeconfigOf(server));
        expectShown(await runCommand(['token', 'list', '--kubeconfig', kubeconfig, ...more]));
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    });
  });
});

/** The text as an argument for printf(1). */
function octalOf(text: string): string {
  return [...Buffer.from(text)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('');
}

async function answering(status: number, body: object): Promise<Server> {
  const server = createServer((_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function kubeconfigOf(server: Server): string {
  const { port } = server.address() as AddressInfo;
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    users: [{ name: 'u', user: {} }],
    'current-context': 'c',
  });
}
