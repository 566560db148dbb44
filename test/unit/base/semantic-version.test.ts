import { describe, expect, it } from 'vitest';
import { compareSemanticVersions, parseSemanticVersion } from '../../../src/base/semantic-version.ts';

describe('parseSemanticVersion', () => {
  it('reads the numbers and the pre-release, and drops build metadata', () => {
    expect(parseSemanticVersion('v1.36.2-rc.1+abc')).toEqual({ major: 1, minor: 36, patch: 2, preRelease: 'rc.1' });
    expect(parseSemanticVersion('1.36.0')).toEqual({ major: 1, minor: 36, patch: 0, preRelease: '' });
  });

  it.each(['1.36', 'v01.2.3', 'stable-1', '', 'v1.2.3.4'])('refuses %j', (text) => {
    expect(parseSemanticVersion(text)).toBeNull();
  });
});

describe('compareSemanticVersions', () => {
  it('orders versions as semver.org does', () => {
    const ordered = [
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0-rc.1',
      '1.0.0',
      '1.0.1',
      '1.2.0',
      '2.0.0',
    ];
    const parsed = ordered.map((text) => parseSemanticVersion(text) ?? { major: 0, minor: 0, patch: 0, preRelease: '' });
    for (const [i, a] of parsed.entries())
      for (const [j, b] of parsed.entries())
        expect(Math.sign(compareSemanticVersions(a, b)), `${ordered[i]} ${ordered[j]}`).toBe(Math.sign(i - j));
  });
});
