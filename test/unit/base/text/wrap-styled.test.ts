import { expect, it } from 'vitest';
import { joinLines, renderText, styled } from '../../../../src/base/text/styled.ts';
import { wrapStyled } from '../../../../src/base/text/wrap-styled.ts';

const TEXT = joinLines(['node1', ['  ~ maxPods: 110 → 60 (', styled('yellow', 'drain'), ', because pods are above the limit)'], '']);

it('breaks lines at spaces and keeps styles', () => {
  const lines = renderText(wrapStyled(TEXT, 34), false).split('\n');
  expect(lines).toEqual(['node1', '  ~ maxPods: 110 → 60 (drain,', '    because pods are above the', '    limit)', '', '']);
  expect(renderText(wrapStyled(TEXT, 34), true)).toContain('60 (\u001b[33mdrain\u001b[0m,\n    because');
});

it.each([25, 30, 40, 60])('loses no character at a width of %d', (width) => {
  const bare = (text: string): string => text.replace(/\s/g, '');
  expect(bare(renderText(wrapStyled(TEXT, width), true))).toBe(bare(renderText(TEXT, true)));
});

it('returns a text that fits, or without a width, unchanged', () => {
  expect(wrapStyled(TEXT, 200)).toBe(TEXT);
  expect(wrapStyled(TEXT, undefined)).toBe(TEXT);
});
