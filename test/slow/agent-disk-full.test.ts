import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentConditionOf as reported } from '../../src/dynamic/agent/status.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { AGENT_DIRECTORY } from '../../src/kubelet/node-agent/agent-program.ts';
import { type AgentHost, agentHost, NODE, writeHostTools } from '../support/agent-host.ts';
import { assignPayload, clusterWithPayloads } from '../support/agent-objects.ts';
import type { FakeCluster } from '../support/fake-cluster.ts';
import { requirement } from '../support/requirement.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const PAYLOADS: Readonly<Record<string, string>> = {
  a: `${HEADER}maxPods: 50\n`,
  bad: `${HEADER}maxPods: 60\ntlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key\n`,
};

const directory = mkdtempSync(join(tmpdir(), 'agent-disk-'));
const store = join(directory, 'root', AGENT_DIRECTORY);

function whyNoMount(): string | null {
  const probe = join(directory, 'probe');
  mkdirSync(probe);
  const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', probe], { encoding: 'utf8' });
  if (status === 0) spawnSync('umount', [probe]);
  return status === 0 ? null : `no file system can be mounted: ${(stderr ?? '').trim()}`;
}

const missing = whyNoMount();

describe.skipIf(requirement('a full file system', missing))('an agent on a full file system', () => {
  let host: AgentHost;
  let cluster: FakeCluster;
  const filler = join(store, 'filler');
  const assign = (name: string): Promise<void> => assignPayload(cluster, NODE, name);

  beforeAll(async () => {
    mkdirSync(store, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', store]);
    const tools = join(directory, 'tools');
    await writeHostTools(tools);
    // Each restart of the kubelet finds the disk full.
    const systemctl = join(tools, 'fault/systemctl');
    const fill = `[ "$1" != restart ] || head -c 1000000 /dev/zero >>'${filler}' 2>/dev/null\n`;
    writeFileSync(systemctl, readFileSync(systemctl, 'utf8').replace('#!/bin/sh\n', `#!/bin/sh\n${fill}`));
    cluster = await clusterWithPayloads(NODE, PAYLOADS);
    host = await agentHost({ directory, tools, cluster, catalogue: await loadCatalogue() });
  }, 60_000);
  afterAll(async () => {
    await host?.stop();
    host?.close();
    spawnSync('umount', [store]);
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  it('rolls a crashing trial back to the last known good configuration, and keeps that over a restart', async () => {
    await assign('a');
    host.start();
    await host.until(() => host.state?.phase === 'good' && host.standIn.configz?.maxPods === 50);
    rmSync(filler);
    await assign('bad');
    await host.until(() => host.state?.phase === 'fallen-back' && host.standIn.configz?.maxPods === 50);
    expect(existsSync(filler)).toBe(true);
    expect(() => writeFileSync(join(store, 'more'), Buffer.alloc(128 * 1024))).toThrow(/ENOSPC/);
    expect(statfsSync(store).type).toBe(0x01021994);
    expect(host.state === null ? null : reported(host.state).message).toMatch(/; the kubelet runs the last known good configuration$/);
    const restarts = (): number => host.calls().filter((call) => call.startsWith('systemctl restart')).length;
    expect(restarts()).toBe(3);
    await host.stop();
    host.start();
    await host.until(() => host.state?.switching === null);
    expect([host.state?.phase, host.standIn.configz?.maxPods, restarts()]).toEqual(['fallen-back', 50, 0]);
  }, 60_000);
});
