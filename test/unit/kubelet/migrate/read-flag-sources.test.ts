import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../../../src/base/errors.ts';
import { flagsOf, readKubeletFlags } from '../../../support/kubelet-flags.ts';

describe('readFlagSources', () => {
  it.each(readKubeletFlags().map((one) => [one.name, one] as const))('%s', async (_, one) => {
    if (one.fails !== undefined) {
      await expect(flagsOf(one)).rejects.toThrow(one.fails);
      return;
    }
    const { words, notes } = await flagsOf(one);
    expect(words.map(({ word }) => word)).toEqual(one.words);
    const ignored = notes.flatMap(({ position }) => (position === undefined ? [] : [`${position.file}:${position.line}`]));
    expect(ignored.toSorted()).toEqual((one.ignored ?? []).toSorted());
    const others = notes.filter(({ position }) => position === undefined).map(formatProblem);
    expect(others).toEqual((one.notes ?? []).map((text) => expect.stringContaining(text)));
  });
});
