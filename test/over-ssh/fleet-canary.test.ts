import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changedHosts, type FleetLab, startFleetLab } from '../support/fleet-lab.ts';
import { runCommand } from '../support/run-cli.ts';

describe('the canary of apply', { timeout: 120_000 }, () => {
  let world: FleetLab;
  const fleet: FleetLab['fleet'] = () => world.fleet();
  const run: FleetLab['run'] = (...argv) => world.run(...argv);
  beforeAll(async () => {
    const hosts = '[{name: node3}, {name: node2, groups: [edge], labels: {pool: edge}}, {name: node4}]';
    world = await startFleetLab(4, `hosts: ${hosts}\ngroups: [{name: edge}]`);
  });
  afterAll(() => world?.close());

  it('is the first host of the file', async () => {
    expect(changedHosts(await run('apply', '-y', '-f', fleet()))[0]).toBe('node3');
  });

  it.each(['node4', 'edge', 'pool=edge'])('is the host of --canary %s', async (canary) => {
    const expected = canary === 'node4' ? 'node4' : 'node2';
    expect(changedHosts(await run('apply', '-y', '-f', fleet(), '--canary', canary))[0]).toBe(expected);
  });

  it('is part of the plan and of the saved plan', async () => {
    const plan = join(world.directory, 'plan.json');
    const planned = await run('plan', '-f', fleet(), '--canary', 'node4', '--serial', '1', '--out', plan);
    expect(planned.stdout).toMatch(
      /^canary: node4; the other hosts follow only if the canary succeeds\norder: node4 \(canary\), then node3, then node2\n3 hosts: 3 pending/m,
    );
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({ canary: ['node4'], maxUnavailable: '1' });
    expect((await runCommand(['plan', 'show', plan])).stdout).toMatch(/^canary: node4;/m);
    expect(changedHosts(await run('apply', plan))[0]).toBe('node4');
  });

  it('is none in a plan with --canary 0, and a number of apply replaces those of a plan', async () => {
    const plan = join(world.directory, 'none.json');
    expect((await run('plan', '-f', fleet(), '--canary', '0', '--out', plan)).stdout).not.toContain('canary:');
    expect(JSON.parse(readFileSync(plan, 'utf8'))).toMatchObject({ canary: [] });
    expect(changedHosts(await run('apply', plan))).toHaveLength(3);
    expect((await run('plan', '-f', fleet(), '--canary', 'node4', '--out', plan)).code).toBe(0);
    expect(changedHosts(await run('apply', plan, '--canary', '1'))[0]).toBe('node3');
  });

  it('may be a host that has succeeded in an earlier run', async () => {
    const file = fleet();
    expect((await run('apply', '-y', '-f', file)).code).toBe(0);
    const again = await run('apply', '-y', '-f', file, '--canary', 'node4', '--retry', 'failed');
    expect(again.code, again.stderr).toBe(0);
  });

  it('is the first host of the file in a plan without --canary', async () => {
    expect((await run('plan', '-f', fleet())).stdout).toMatch(/^canary: node3;/m);
  });

  it('must be a host of the run', async () => {
    const { code, stderr } = await run('apply', '-y', '-f', fleet(), '--canary', 'node9');
    expect(code).toBe(2);
    expect(stderr).toContain('--canary node9: no host of the run has this name, Node, group or label');
  });
});
