import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    // The integration tests start a Kafka broker.
    hookTimeout: 60_000,
    testTimeout: 30_000,
  },
});
