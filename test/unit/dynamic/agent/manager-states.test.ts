import { afterEach, describe, expect, it } from 'vitest';
import { RETRY_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { managerStatesFile } from '../../../../src/kubelet/node-agent/layout.ts';
import { newWorld, payload, type World } from './world.ts';

const STATE = '/var/lib/kubelet/cpu_manager_state';
const NONE = '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}';
const STATIC_STATE = '{"policyName":"static","defaultCpuSet":"0-1","checksum":1636926438}';
const STATIC = 'cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n';
const COPY = managerStatesFile(AGENT_DIRECTORY);

let world: World;
afterEach(() => world.stop());

const state = (): string | undefined => world.host.files.get(STATE)?.content;
const hasCopy = (): boolean => world.host.files.has(COPY);
const ends = (reason: string) => async (): Promise<boolean> => (await world.condition()).reason === reason;

/** A kubelet that creates its state file, and exits with that of another policy, as a real one does. */
function begin(options: Parameters<typeof newWorld>[0] = {}): void {
  world = newWorld({ timing: { trialMs: 30_000 }, managerStates: { [STATE]: { none: NONE, static: STATIC_STATE } }, ...options });
  world.start();
}
const assign = async (name: string, text: string): Promise<void> => {
  await world.push(name, text);
  await world.assign(name);
};

describe('an agent whose policy permits drain', () => {
  it('removes a state file of another policy in the switch, and forgets its copy when the configuration is good', async () => {
    begin({ allow: 'drain' });
    world.behaviours.set(50, { configz: { cpuManagerPolicy: 'static', kubeReserved: { cpu: '500m' } } });
    await assign('static', payload(50, STATIC));
    await world.until('in trial', () => world.state?.phase === 'trial' && world.state.switching === null);
    expect([state(), hasCopy(), world.host.text(COPY)]).toEqual([STATIC_STATE, true, expect.stringContaining('"of":null')]);
    await world.until('good', ends('Good'));
    expect([world.runs(), world.starts(), state()]).toEqual([50, 1, STATIC_STATE]);
    await world.until('the copy is removed', () => !hasCopy());
    // Later, the local configuration needs the other policy again.
    await world.assign(null);
    await world.until('local', () => world.state?.phase === 'local' && world.runs() === 110);
    expect([state(), world.starts()]).toEqual([NONE, 2]);
  });

  it('restores the state file in a rollback, also with what the previous kubelet had written', async () => {
    begin({ allow: 'drain' });
    const written = NONE.replace('""', '"0-1"');
    world.host.files.set(STATE, { type: 'file', mode: 0o600, owner: 'root:root', content: written });
    world.behaviours.set(60, { crashesAfter: 5 });
    await assign('bad', payload(60, STATIC));
    await world.until('rolled back', ends('FallenBack'));
    await world.until('the previous configuration runs', () => world.state?.switching === null && world.runs() === 110);
    expect([state(), hasCopy(), world.starts()]).toEqual([written, false, 2]);
  });

  it('removes a state file that the failed kubelet created', async () => {
    begin({ allow: 'drain' });
    world.host.files.delete(STATE);
    world.behaviours.set(60, { crashesAfter: 5 });
    await assign('bad', payload(60, STATIC));
    await world.until('in trial', () => world.state?.phase === 'trial' && world.state.switching === null);
    expect(state()).toBe(STATIC_STATE);
    await world.until('rolled back', ends('FallenBack'));
    await world.until('the previous configuration runs', () => world.state?.switching === null && world.runs() === 110);
    expect([state(), hasCopy()]).toEqual([NONE, false]);
  });

  it('starts the kubelet again when the state file cannot be removed', async () => {
    begin({ allow: 'drain' });
    const perform = world.host.perform.bind(world.host);
    let refusals = 0;
    Object.assign(world.host, {
      perform: async (...args: Parameters<typeof perform>) => {
        const at = args[0].findIndex((operation) => operation.kind === 'remove-file' && operation.path === STATE);
        if (at === -1) return perform(...args);
        refusals++;
        await perform(args[0].slice(0, at));
        throw new Error(`${STATE}: Read-only file system`);
      },
    });
    await assign('static', payload(50, STATIC));
    await world.until('refused', async () => refusals > 0 && String((await world.condition()).message).includes('Read-only file system'));
    expect([world.runs(), state()]).toEqual([110, NONE]);
  });
});

describe('an agent that is killed in a switch with state files', () => {
  /** Kills the agent after some operations of the switch that stops the kubelet for the nth time, and starts it again. */
  const killAfter = async (count: number, nth: number, before: () => Promise<void>, killed = () => {}): Promise<boolean> => {
    const perform = world.host.perform.bind(world.host);
    let switches = 0;
    let isDead = false;
    let isWhole = false;
    Object.assign(world.host, {
      perform: async (...args: Parameters<typeof perform>) => {
        if (isDead) throw new Error('killed');
        if (!args[0].some(({ kind }) => kind === 'stop-unit') || ++switches !== nth) return perform(...args);
        isDead = true;
        isWhole = count >= args[0].length;
        await perform(args[0].slice(0, count));
        throw new Error('killed');
      },
    });
    await before();
    await world.until('killed', () => isDead);
    await world.stop();
    Object.assign(world.host, { perform });
    killed();
    world.start();
    return isWhole;
  };

  it('starts the trial with a new state file', async () => {
    for (let count = 0, isWhole = false; !isWhole; count++) {
      begin({ allow: 'drain' });
      world.behaviours.set(50, { configz: { cpuManagerPolicy: 'static', kubeReserved: { cpu: '500m' } } });
      isWhole = await killAfter(count, 1, () => assign('static', payload(50, STATIC)));
      await world.until('good', ends('Good'));
      await world.until('the copy is removed', () => !hasCopy());
      expect([world.runs(), state()], `killed after ${count}`).toEqual([50, STATIC_STATE]);
      await world.stop();
    }
  });

  it('starts the kubelet that the switch has stopped, also if the copies of the state files are damaged', async () => {
    let damaged = 0;
    for (let count = 0, isWhole = false; !isWhole; count++) {
      begin({ allow: 'drain' });
      world.behaviours.set(50, { configz: { cpuManagerPolicy: 'static', kubeReserved: { cpu: '500m' } } });
      isWhole = await killAfter(
        count,
        1,
        () => assign('static', payload(50, STATIC)),
        () => {
          const copy = world.host.files.get(COPY);
          if (copy?.content === undefined) return;
          damaged++;
          world.host.files.set(COPY, { ...copy, content: copy.content.slice(0, 20) });
        },
      );
      await world.until('good', ends('Good'));
      await world.until('the copy is removed', () => !hasCopy());
      expect([world.runs(), state()], `killed after ${count}`).toEqual([50, STATIC_STATE]);
      await world.stop();
    }
    expect(damaged).toBeGreaterThan(1);
  });

  it('restores the state file in the rollback', async () => {
    const written = NONE.replace('""', '"0-1"');
    for (let count = 0, isWhole = false; !isWhole; count++) {
      begin({ allow: 'drain' });
      world.host.files.set(STATE, { type: 'file', mode: 0o600, owner: 'root:root', content: written });
      world.behaviours.set(60, { crashesAfter: 5 });
      isWhole = await killAfter(count, 2, () => assign('bad', payload(60, STATIC)));
      await world.until('rolled back', ends('FallenBack'));
      await world.until('the previous configuration runs', () => world.state?.switching === null && world.runs() === 110);
      expect([state(), world.host.files.has(COPY)], `killed after ${count}`).toEqual([written, false]);
      await world.stop();
    }
  });
});

describe('an agent whose policy excludes drain', () => {
  it('rejects another policy on a cordoned node, because it removes no state file', async () => {
    begin({ allow: 'new-pods-only' });
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'node-1' }, 'merge', { spec: { unschedulable: true } });
    await assign('static', payload(50, STATIC));
    await world.until('rejected', ends('Rejected'));
    expect((await world.condition()).message).toContain('differs from the policy none in the file cpu_manager_state');
    expect([world.starts(), state()]).toEqual([0, NONE]);
  });
});

describe('a state file that the next kubelet would refuse', () => {
  const put = (content: string): void => void world.host.files.set(STATE, { type: 'file', mode: 0o600, owner: 'root:root', content });

  it.each<[string, string, string]>([
    ['is corrupt', NONE.replace('1353318690', '1353318691'), 'is corrupt: the kubelet would exit at its next start'],
    ['is of another policy', STATIC_STATE, 'was written with cpuManagerPolicy static, not none: the kubelet would exit at its next start'],
  ])('and that %s is reported before the kubelet is restarted, and the trial starts without it', async (_, content, cause) => {
    begin({ allow: 'new-pods-only' });
    put(content);
    await assign('pods', payload(50));
    await world.until('rejected', ends('Rejected'));
    expect((await world.condition()).message).toContain(`the state file ${STATE} ${cause}`);
    expect((await world.condition()).message).toContain(`rm ${STATE}`);
    expect([world.starts(), state()]).toEqual([0, content]);
    put(NONE);
    await world.annotate({ [RETRY_ANNOTATION]: 'now' });
    await world.until('good', ends('Good'));
    expect([world.runs(), world.starts()]).toEqual([50, 1]);
  });

  it('is reported before an assignment is removed, and the kubelet keeps running until it can start', async () => {
    begin({ allow: 'drain' });
    await assign('pods', payload(50));
    await world.until('good', ends('Good'));
    put(NONE.replace('1353318690', '1353318691'));
    await world.assign(null);
    await world.until('reported', async () => String((await world.condition()).message).includes(`the state file ${STATE} is corrupt`));
    expect([world.runs(), world.starts()]).toEqual([50, 1]);
    put(NONE);
    await world.until('local', () => world.state?.switching === null && world.runs() === 110);
    expect(world.starts()).toBe(2);
  });
});
