import type { ChartConfiguration } from 'chart.js';
import type { ChartData } from '../server-api';
import { clockTime } from '../live-table/values';

const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumSignificantDigits: 3 });
const DAY_MS = 86_400_000;

type Options = NonNullable<ChartConfiguration<'bar' | 'line'>['options']>;

export interface Colours {
  readonly accent: string;
  readonly text: string;
  readonly line: string;
}

/** A picture and the sentence that says the same. */
export interface Drawing {
  readonly kind: DrawingKind;
  readonly title: string;
  /** What the marks mean, where there is more than one. */
  readonly legend: readonly { mark: 'line' | 'band'; text: string }[];
  readonly configuration: ChartConfiguration<'bar' | 'line'>;
}

export const COLOURS: Record<'light' | 'dark', Colours> = {
  light: { accent: '#0e6177', text: '#4f5f6d', line: '#d3dce3' },
  dark: { accent: '#4cc3df', text: '#9fb0be', line: '#2b3947' },
};

/** What a picture of a column can be. */
export const DRAWING_KINDS = ['line', 'distribution', 'bars'] as const;
export type DrawingKind = (typeof DRAWING_KINDS)[number];

/** One picture of a column; null where there is nothing to draw. */
export function drawing(kind: DrawingKind, data: ChartData, colours: Colours): Drawing | null {
  const { distribution, series, frequencies } = data;
  switch (kind) {
    case 'line':
      return series.length > 1 ? seriesDrawing(data, colours) : null;
    case 'distribution': {
      if (distribution === null) return null;
      const width = (distribution.high - distribution.low) / distribution.counts.length;
      const labels = distribution.counts.map((_, bin) => SHORT.format(distribution.low + bin * width));
      return bars(kind, `Distribution of ${data.column}`, labels, distribution.counts, colours);
    }
    case 'bars': {
      if (frequencies.length === 0) return null;
      const labels = frequencies.map(({ value }) => value ?? '(empty)');
      const counts = frequencies.map(({ rows }) => rows);
      return bars(kind, `Rows per ${data.column}`, labels, counts, colours);
    }
  }
}

/** The pictures of a column. */
export function drawings(data: ChartData, colours: Colours): Drawing[] {
  return DRAWING_KINDS.map((kind) => drawing(kind, data, colours)).filter((found) => found !== null);
}

function seriesDrawing({ column, series }: ChartData, colours: Colours): Drawing {
  const span = (series.at(-1)?.at ?? 0) - (series[0]?.at ?? 0);
  const labels = series.map(({ at }) => moment(new Date(at), span));
  const faint = { borderColor: 'transparent', pointRadius: 0, backgroundColor: `${colours.accent}33` };
  return {
    kind: 'line',
    title: `${column} over time`,
    legend: [
      { mark: 'band', text: 'least to greatest' },
      { mark: 'line', text: 'mean' },
    ],
    configuration: {
      type: 'line',
      data: {
        labels,
        datasets: [
          { ...faint, label: 'least', data: series.map(({ least }) => least), fill: '+1' },
          { ...faint, label: 'greatest', data: series.map(({ greatest }) => greatest) },
          {
            label: 'mean',
            data: series.map(({ mean }) => mean),
            borderColor: colours.accent,
            borderWidth: 2,
            pointRadius: 0,
          },
        ],
      },
      options: options(colours),
    },
  };
}

function bars(
  kind: DrawingKind,
  title: string,
  labels: string[],
  counts: readonly number[],
  colours: Colours,
): Drawing {
  return {
    kind,
    title,
    legend: [],
    configuration: {
      type: 'bar',
      data: { labels, datasets: [{ label: 'rows', data: [...counts], backgroundColor: colours.accent }] },
      options: options(colours),
    },
  };
}

function options({ text, line }: Colours): Options {
  const x = { ticks: { color: text, maxTicksLimit: 8, maxRotation: 0, autoSkipPadding: 16 }, grid: { display: false } };
  const y = { ticks: { color: text, maxTicksLimit: 6, callback: axisText }, grid: { color: line } };
  return {
    animation: false,
    maintainAspectRatio: false,
    interaction: { mode: 'index', intersect: false },
    scales: { x, y },
  };
}

function axisText(value: number | string): string {
  return typeof value === 'number' ? SHORT.format(value) : value;
}

function moment(date: Date, span: number): string {
  return span < DAY_MS ? clockTime(date) : date.toLocaleDateString();
}
