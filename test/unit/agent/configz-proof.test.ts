import { describe, expect, it } from 'vitest';
import { configzProof } from '../../../src/agent/configz-proof.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import { loadCatalogue } from '../../../src/core/kubelet/catalogue.ts';
import { clusterUnreachable } from '../../../src/core/problems/cluster.ts';
import { fakeClock } from '../../support/fake-clock.ts';

const catalogue = await loadCatalogue();
const PROCESS = { pid: 7, minor: 36, expected: async () => ({ maxPods: 50 }) };

function begin(answers: (JsonObject | Error)[]) {
  const clock = fakeClock();
  let asked = 0;
  const ask = async (): Promise<JsonObject> => {
    const answer = answers[asked++];
    if (answer === undefined) throw new Error('asked too often');
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const proof = configzProof({ nodeName: 'n', catalogue, clock, ask, onTrouble: () => undefined });
  return { clock, proof, asked: () => asked };
}
const shows = (maxPods: number): JsonObject => ({ kubeletconfig: { maxPods } });

describe('configzProof', () => {
  it('asks a process once, and a new one again', async () => {
    const { proof, asked } = begin([shows(50), shows(40), shows(50)]);
    expect(await proof.differing(PROCESS)).toEqual([]);
    expect(await proof.differing(PROCESS)).toEqual([]);
    expect(asked()).toBe(1);
    expect(await proof.differing({ ...PROCESS, pid: 8 })).toEqual(['maxPods']);
    proof.forget();
    expect(await proof.differing({ ...PROCESS, pid: 8 })).toEqual([]);
  });

  it('asks again at once after the first failure, then every 5 s, and says why it is not told', async () => {
    const { proof, asked, clock } = begin([clusterUnreachable('https://x', 'refused', 'Wait'), new Error('forbidden'), shows(50)]);
    expect(await proof.differing(PROCESS)).toBeNull();
    expect(proof.trouble).toMatchObject({ isAnswer: false, why: expect.stringContaining('refused') });
    expect(await proof.differing(PROCESS)).toBeNull();
    expect(proof.trouble).toMatchObject({ isAnswer: true, why: "configz can't be read: forbidden" });
    expect(await proof.differing(PROCESS)).toBeNull();
    expect(asked()).toBe(2);
    await clock.sleep(5_000);
    expect(await proof.differing(PROCESS)).toEqual([]);
    expect(proof.trouble).toBeNull();
  });
});
