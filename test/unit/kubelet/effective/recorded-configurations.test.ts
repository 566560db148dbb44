import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type EffectiveCase, effectiveLeaves } from '../../../support/effective-cases.ts';

type Recorded = EffectiveCase & { readonly expected: Readonly<Record<string, string>> };
/** Recorded from a kubelet 1.36.2; test/e2e/real-effective-config.test.ts compares more cases with a real one. */
const RECORDED = JSON.parse(readFileSync(new URL('./fixtures/recorded-1.36.2.json', import.meta.url), 'utf8')) as readonly Recorded[];

describe('the effective configuration', () => {
  it('equals the recorded ones of a kubelet', () => {
    expect(RECORDED.length).toBeGreaterThanOrEqual(40);
    for (const { expected, ...given } of RECORDED) expect(effectiveLeaves(given, '/d'), JSON.stringify(given)).toEqual(expected);
  });
});
