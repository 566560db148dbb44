import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { loadCatalogue } from '../../../src/kubelet/catalogue/load-catalogue.ts';
import { requirePossibleSettings } from '../../../src/kubelet/layers/setting.ts';

const catalogue = await loadCatalogue();

describe('requirePossibleSettings', () => {
  const problems = (...settings: readonly string[]): readonly string[] => {
    try {
      requirePossibleSettings(settings, catalogue);
      return [];
    } catch (error) {
      if (error instanceof AppError) return error.problems.map(({ code, path, message }) => `${code} ${path}: ${message}`);
      throw error;
    }
  };

  it('accepts fields and values of any supported version', () => {
    expect(problems('maxPods=50', 'logging.sanitization=true', 'podLogsDir=/var/log/pods')).toEqual([]);
  });

  it('names all settings that no version accepts', () => {
    expect(problems('maxPod=5', 'podLogsDir=/var/log/pods', 'registryPullQPS=x')).toEqual([
      'CONFIG_UNKNOWN_FIELD --set maxPod=5: maxPod: unknown field',
      'CONFIG_WRONG_TYPE --set registryPullQPS=x: registryPullQPS: must be an integer, not the string "x"',
    ]);
  });
});
